"""Local models with JSON Schemas: finished answers fit, in any batch; free answers stay as they are."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import count, islice
from math import exp
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("llguidance")

from barista_bench.core.prompt import Prompt  # noqa: E402
from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.judging.forms import STEPS_SCHEMA  # noqa: E402
from barista_bench.judging.verdicts import GEVAL_FORM, REASONING_FORM  # noqa: E402
from barista_bench.models.base import Completion, Failure, GenerationConfig, Request  # noqa: E402
from barista_bench.models.local.holding import AnswerHolder  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.writing.checks import SCHEMA as QUESTIONS  # noqa: E402
from barista_bench.writing.rewording import SCHEMA as WORDINGS  # noqa: E402
from tests.conformance.task_examples import TASKS, Releases, options_of  # noqa: E402
from tests.models.transformers_kit import alike, request_of  # noqa: E402
from tests.random_schemas import random_schema  # noqa: E402
from tests.tiny_architectures import make_served_model, make_text_model  # noqa: E402

Answers = list[list[Completion | Failure]]

GREEDY = GenerationConfig(temperature=0, max_new_tokens=48)
SAMPLED = GenerationConfig(temperature=1.0, top_k=50, max_new_tokens=48)
SCORE = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": list(range(11))}, "reason": {"type": "string", "maxLength": 6}},
    "required": ["score", "reason"],
    "additionalProperties": False,
}
WRITTEN: tuple[Mapping[str, object], ...] = (
    *(GEVAL_FORM.schema(), REASONING_FORM.schema(600)),
    *(STEPS_SCHEMA, QUESTIONS, WORDINGS),
)
"""Forms of judges and writers."""
NAMES = {"type": "array", "items": {"enum": ["cup", "jug"]}, "minItems": 1, "maxItems": 2}
ALONE = 32
"""How many of the shuffled requests of each family and setting are also asked in batches of one."""


def held_model(folder: Path, **settings: Any) -> TransformersModel:
    return TransformersModel.load(str(folder), structured_output=True, device="cpu", **settings)


def questions(schemas: Sequence[Mapping[str, object] | None], seeds: tuple[int, ...] = (0,)) -> list[Request]:
    texts = ["Which hand?", "left or right, and of what?", "the cup and the jug " * 4, "Where?"]
    return [
        replace(request_of(n, n % 2, texts[n % len(texts)], seeds), schema=schema) for n, schema in enumerate(schemas)
    ]


def finished(requests: Sequence[Request], answers: Answers) -> list[tuple[Mapping[str, object], str]]:
    """Schema and text of each held answer that came to its end, after which it has to fit."""
    pairs = []
    for request, completions in zip(requests, answers, strict=True):
        for completion in completions:
            assert isinstance(completion, Completion), completion
            if completion.finish_reason == "stop" and request.schema:
                Draft202012Validator(request.schema).validate(json.loads(completion.text))
                pairs.append((request.schema, completion.text))
    return pairs


@pytest.fixture(scope="module")
def held(folders: dict[str, Path]) -> TransformersModel:
    return held_model(folders["gemma3"], batch_size=8)


@pytest.mark.parametrize("config", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_each_row_of_a_batch_is_held_to_its_own_schema(
    held: TransformersModel, loaded: dict[str, TransformersModel], config: GenerationConfig
) -> None:
    requests = questions([SCORE, None, NAMES, {}], seeds=(1, 2))
    answers = held.generate(requests, config)
    assert len(finished(requests, answers)) == 4
    held.batch_size = 1
    assert alike(held.generate(requests, config)) == alike(answers)
    held.batch_size = 8
    free = alike(loaded["gemma3"].generate(requests, config))
    assert [alike(answers)[n] == free[n] for n in range(4)] == [False, True, False, True]


def test_constrained_decoding_only_removes_tokens(
    held: TransformersModel, loaded: dict[str, TransformersModel]
) -> None:
    """Each token is the likeliest of the tokens that the schema allows, and log-probabilities cover only these."""
    [[answer]] = held.generate(questions([SCORE]), replace(GREEDY, top_logprobs=5))
    assert isinstance(answer, Completion)
    assert answer.logprobs is not None
    for token in answer.logprobs:
        assert token.logprob == max(value for _, value in token.top)
        assert sum(exp(value) for _, value in token.top) <= 1.00001
    at_score = next(token for token in answer.logprobs if token.token.strip(' :"').isdigit())
    assert all(text.strip().isdigit() or not text.strip() for text, _ in at_score.top)
    only = [token for token in answer.logprobs if len(token.top) == 1]
    assert only
    assert all(token.logprob == 0 for token in only)


@pytest.mark.parametrize("template", ["opened", "unopened"])
@pytest.mark.parametrize("tags", ["<think>,</think>", "[T],[/T]", "<|im_start|>,<|im_end|>"])
def test_the_form_begins_after_the_thoughts(folders: dict[str, Path], tmp_path: Path, template: str, tags: str) -> None:
    opening = tags.partition(",")[0]
    written = (folders["gemma3"] / "chat_template.jinja").read_text()
    file = tmp_path / "template.jinja"
    file.write_text(written.replace("assistant\n", f"assistant\n{opening}") if template == "opened" else written)
    model = held_model(folders["gemma3"], think_tags=tags, chat_template=file)
    requests = questions([NAMES, SCORE], seeds=tuple(range(6)))
    answers = model.generate(requests, replace(SAMPLED, max_new_tokens=60, thinking_budget=6))
    pairs = finished(requests, answers)
    thoughts = [completion.reasoning for each in answers for completion in each if isinstance(completion, Completion)]
    assert len(pairs) > 6
    assert any(thought for thought in thoughts)
    assert all(thought is not None for thought in thoughts) or template == "unopened"


def test_a_cut_answer_is_truncated_and_a_stop_text_ends_only_its_row(held: TransformersModel) -> None:
    [[answer]] = held.generate(questions([SCORE]), replace(GREEDY, max_new_tokens=5))
    assert isinstance(answer, Completion)
    assert answer.finish_reason == "length"
    requests = questions([SCORE, NAMES, SCORE])
    answers = held.generate(requests, replace(GREEDY, stop=("score",)))
    assert isinstance(answers[0][0], Completion)
    assert "score" not in answers[0][0].text
    assert len(finished(requests[1:2], answers[1:2])) == 1


def test_only_a_request_with_an_unusable_schema_fails(held: TransformersModel) -> None:
    failure, answer = (each[0] for each in held.generate(questions([{"uniqueItems": True}, NAMES]), GREEDY))
    assert isinstance(failure, Failure)
    assert "example-0" in failure.error
    assert "uniqueItems" in failure.error
    assert isinstance(answer, Completion)


def test_a_model_cannot_be_held_without_the_library_or_an_end(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = held_model(folders["gemma3"])
    assert model.identity.settings["structured_output"] is True
    encoder, inner = model._engine.encoder, model._engine.model
    with pytest.raises(ModelError, match=r"no token ends its answers.*Fix"):
        AnswerHolder("m", encoder.tokenizer, inner.config.get_text_config().vocab_size, (), None)
    tokenizer = deepcopy(encoder.tokenizer)
    tokenizer.add_tokens(["a" * 1025])
    with pytest.raises(ModelError, match=r"m: .*1 of its tokens are longer than the 1024 bytes.*Fix: leave"):
        AnswerHolder("m", tokenizer, len(tokenizer), (1,), None)
    monkeypatch.setattr("barista_bench.errors.find_spec", lambda name: None if name == "llguidance" else name)
    with pytest.raises(ModelError, match=r"needs llguidance. Fix: pip install '?barista_bench\[run\]"):
        held_model(folders["gemma3"])


@pytest.fixture(scope="module")
def families(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Four of them, and two kinds of tokenizers: of bytes, and of words that begin with their spaces."""
    made = tmp_path_factory.mktemp("held")
    spaced = make_served_model(made / "idefics3", spaced=True)
    text = make_text_model(made / "llama")
    return {"gemma3": folders["gemma3"], "llava": folders["llava"], "idefics3": spaced, "llama": text}


@pytest.fixture(scope="module")
def our_schemas(source_of: Callable[[str], Path]) -> list[Mapping[str, object]]:
    """Two schemas of each task that has one, and the schemas of judges and writers."""
    releases = Releases(source_of)
    schemas = list(WRITTEN)
    for task in TASKS:
        examples = releases.examples(task)
        of_task = [task(options=options_of(task)).answer_schema(example) for example in examples]
        different = {json.dumps(schema): schema for schema in of_task if schema is not None}
        schemas += [*different.values()][:2]
    return schemas


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("family", ["gemma3", "llava", "idefics3", "llama"])
def test_finished_answers_fit_in_every_family(
    family: str, families: dict[str, Path], our_schemas: list[Mapping[str, object]]
) -> None:
    assert len(our_schemas) >= len(WRITTEN) + 11
    number = list(families).index(family)
    drawn = (random_schema(seed) for seed in count(1000 * number))
    if family == "idefics3":  # whose tokenizer has no token for other letters
        drawn = (schema for schema in drawn if json.dumps(schema, ensure_ascii=False).isascii())
    schemas: list[Mapping[str, object] | None] = [*islice(drawn, 125), *our_schemas, *([None, {}] * 4)]
    random.Random(number).shuffle(schemas)
    requests = questions(schemas)
    if family == "llama":
        requests = [replace(request, prompt=Prompt("", request.prompt.parts[-1:]), images=()) for request in requests]
    model, free = held_model(families[family]), TransformersModel.load(str(families[family]), device="cpu")
    for config, part in ((GREEDY, requests[::2]), (SAMPLED, requests[1::2])):
        longer = replace(config, max_new_tokens=96)
        model.batch_size = 8
        answers = alike(model.generate(part, longer))
        assert len(finished(part, answers)) > len(part) / 2
        model.batch_size = 1
        assert alike(model.generate(part[:ALONE], longer)) == answers[:ALONE]
        loose = [n for n, request in enumerate(part) if not request.schema]
        assert [answers[n] for n in loose] == alike(free.generate([part[n] for n in loose], longer))
