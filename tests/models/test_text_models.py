"""Language models that read only text: blind baselines, and judges."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from barista_bench.core.prompt import ImagePart, Prompt, TextPart  # noqa: E402
from barista_bench.data.folder import build  # noqa: E402
from barista_bench.errors import ConfigError, ModelError  # noqa: E402
from barista_bench.models.ablations import ablate  # noqa: E402
from barista_bench.models.base import Completion, Failure, Request  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.runs.ask.runner import run  # noqa: E402
from tests.models.transformers_kit import GREEDY, SAMPLED  # noqa: E402
from tests.tiny_architectures import make_text_model  # noqa: E402

QUESTIONS = [
    "Is the cup left of the jug?",
    "Yes or no?",
    "Name what the hand touches, and on which side it lies.",
    "A?",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_text_model(tmp_path_factory.mktemp("text") / "llama")


@pytest.fixture(scope="module")
def model(folder: Path) -> TransformersModel:
    return TransformersModel.load(str(folder), batch_size=3)


def asked(number: int, question: str, *, seeds: tuple[int, ...] = (0,), system: str = "Be brief.") -> Request:
    return Request(f"q{number}", Prompt(system, (TextPart(question),)), (), seeds=seeds)


def texts(answers: list[list[Completion | Failure]]) -> list[list[str]]:
    return [[completion.text for completion in each if isinstance(completion, Completion)] for each in answers]


def test_answers_equal_plain_generate_one_by_one_and_in_batches(folder: Path, model: TransformersModel) -> None:
    plain, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    expected = []
    for question in QUESTIONS:
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
        inputs = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        made = plain.generate(**inputs, max_new_tokens=GREEDY.max_new_tokens, do_sample=False)
        expected.append([tokenizer.decode(made[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).lstrip()])
    requests = [asked(number, question) for number, question in enumerate(QUESTIONS)]
    assert texts(model.generate(requests, GREEDY)) == expected
    assert [texts(model.generate([request], GREEDY))[0] for request in requests] == expected
    assert len({answer for (answer,) in expected}) > 1


def test_a_sample_depends_only_on_its_own_seed(model: TransformersModel) -> None:
    several = model.generate([asked(0, QUESTIONS[0], seeds=(3, 4)), asked(1, QUESTIONS[2], seeds=(3,))], SAMPLED)
    (alone,) = model.generate([asked(0, QUESTIONS[0], seeds=(4,))], SAMPLED)
    assert texts(several)[0][1] == texts([alone])[0][0]


def test_prompts_for_vllm_become_the_tokens_that_transformers_reads(model: TransformersModel) -> None:
    encoder = model._engine.encoder
    text, adds_special_tokens, _ = encoder.text(asked(0, QUESTIONS[0]))
    tokens = encoder.tokenizer(text, add_special_tokens=adds_special_tokens)["input_ids"]
    assert tokens == encoder.encode(asked(0, QUESTIONS[0])).tensors["input_ids"][0].tolist()


def test_the_identity_names_the_template_and_no_image_processor(model: TransformersModel) -> None:
    assert "chat_template" in model.identity.settings
    assert "image_processor" not in model.identity.settings
    assert model.reads_text_alone


def test_a_request_is_answered_without_its_images_and_fails_only_with_them(model: TransformersModel) -> None:
    from PIL import Image

    shown = replace(
        asked(0, QUESTIONS[0]),
        prompt=Prompt("", (ImagePart(0), TextPart(QUESTIONS[0]))),
        images=(Image.new("RGB", (8, 8)),),
    )
    ((failed,), (answered,)) = model.generate([shown, asked(1, QUESTIONS[1])], GREEDY)
    assert isinstance(failed, Failure)
    assert "reads only text" in failed.error
    assert isinstance(answered, Completion)
    ((blind,),) = ablate(model, "text_only").generate([shown], GREEDY)
    assert isinstance(blind, Completion)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"min_pixels": 4096}, "reads no images.*min_pixels"),
        ({"max_pixels": 4096}, "reads no images.*max_pixels"),
        ({"frames_as": "video"}, "takes no video"),
    ],
)
def test_settings_of_pictures_are_refused(folder: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        TransformersModel.load(str(folder), **settings)


def test_without_a_chat_template_it_is_refused(folder: Path, tmp_path: Path) -> None:
    AutoModelForCausalLM.from_pretrained(folder).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="has no chat template"):
        TransformersModel.load(str(tmp_path))


def test_a_gguf_file_without_its_library_is_refused_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such file"):
        TransformersModel.load(str(tmp_path / "none.gguf"))


def test_a_run_with_images_is_refused_before_anything_is_asked_and_blind_it_runs(
    folder: Path, small_kitchen: Path, tmp_path: Path
) -> None:
    built = tmp_path / "data"
    build(small_kitchen, built, configs=["activity"], cache=False, sampling={"limit": 3})
    settings = {"task": ["activity"], "repetitions": 1, "max_new_tokens": 4}
    with pytest.raises(ConfigError, match=r"reads text alone, and barista/activity shows images. Fix: text_only:"):
        run(built, tmp_path / "seen", model=str(folder), **settings)
    session = run(built, tmp_path / "blind", model=f"text_only:{folder}", **settings)
    assert (session.asked, session.failed) == (3, 0)
