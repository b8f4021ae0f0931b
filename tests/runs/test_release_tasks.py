"""Benchmarks with annotation files: built, asked in several steps, resumed, scored by options."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import datasets
import pytest

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import write_scores
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.manifest import read_manifest
from barista_bench.data.register import register, unregister
from barista_bench.errors import ConfigError, DataError
from barista_bench.interchange.recorded_answers import import_recorded
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.runs.ask import runner
from barista_bench.runs.log.sample_log import SampleLog, read_records
from barista_bench.runs.log_reader import StepLog, read_steps, step_key
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import score
from tests.made_benchmark import WORDS, Words
from tests.one_run import run
from tests.runs.made_logs import read_folder, record as made_record

pytestmark = pytest.mark.usefixtures("registered")


class Talker:
    """Describes in the first step and chooses in the second; dies after `lives` answers."""

    box_format = BoxFormat()
    batch_size = 2

    def __init__(self, lives: int = 10**9, finish: str = "stop") -> None:
        self.identity, self.lives, self.finish = ModelIdentity("talker"), lives, finish
        self.asked: list[tuple[str, str, int]] = []

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        return [[self._answer(request, seed) for seed in request.seeds] for request in requests]

    def _answer(self, request: Request, seed: int) -> Completion | Failure:
        if self.lives <= 0:
            raise KeyboardInterrupt
        self.lives -= 1
        text = request.prompt.as_text()
        self.asked.append((request.request_id, text, len(request.images)))
        if "Choose" in text:
            return Completion("Cup" if "0" in request.request_id else "cup", input_tokens=10, output_tokens=1)
        return Completion(f"seen {seed}", self.finish, input_tokens=100, output_tokens=5)  # type: ignore[arg-type]


Ask = Callable[..., None]


@pytest.fixture
def ask(data: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Asks a model the made task in two repetitions."""

    def asked(model: Talker, out: Path, **settings: object) -> None:
        monkeypatch.setattr(runner, "load_model", lambda *_: model)
        run(data, out, benchmark="words", task="choose", **{"repetitions": 2, **settings})

    return asked


def test_build_keeps_examples_with_a_video_and_counts_those_without(release: Path, data: Path) -> None:
    loaded = datasets.load_dataset(str(data), "choose")
    assert {split: len(rows) for split, rows in loaded.items()} == {"dev": 2, "test": 3}
    manifest = read_manifest(data)
    assert manifest["benchmark"] == "words"
    (skipped,) = manifest["configs"][0]["skipped"]
    assert "gone.mp4" in skipped
    assert len(loaded["dev"][0]["images"]) == 2
    assert "Words, prepared for evaluation" in (data / "README.md").read_text()


def test_linked_and_frozen_sets_are_the_same_examples(release: Path, data: Path, tmp_path: Path) -> None:
    linked = build(release, tmp_path / "words", benchmark="words", frames="linked", cache=False).folder
    both = [open_examples(folder, "words", "choose") for folder in (data, linked)]
    assert both[0].content_hash == both[1].content_hash
    pixels = [{image.size for item in images for image in item.images(Words())} for images in both]
    assert pixels[0] == pixels[1]


def test_videos_may_be_in_another_folder(release: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "questions.json").write_bytes((release / "questions.json").read_bytes())
    made = build(
        tmp_path / "notes", tmp_path / "words", benchmark="words", videos=release, frames="linked", cache=False
    )
    (item, *_) = open_examples(made.folder, "words", "choose")
    assert len(item.images(Words())) == 2
    with pytest.raises(DataError, match=r"no example.*Fix"):
        build(tmp_path / "notes", tmp_path / "none", benchmark="words", cache=False)


@pytest.mark.parametrize(("name", "value"), [("revision", "main"), ("split_file", "x.json"), ("strict", True)])
def test_settings_of_a_scene_graph_are_refused(release: Path, tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"words takes no {name}"):
        build(release, tmp_path / "words", benchmark="words", cache=False, **{name: value})  # type: ignore[arg-type]


def test_each_run_of_an_example_is_asked_on_with_its_own_answer(ask: Ask, tmp_path: Path) -> None:
    model = Talker()
    ask(model, tmp_path)
    first = [text for _, text, images in model.asked if images == 2]
    second = [text for _, text, images in model.asked if images == 0]
    assert len(first) == len(second) == 10
    records = list(read_folder(tmp_path))
    assert len(records) == 10
    assert len({record.earlier for record in records}) == 10, (
        "every sample has a seed, and so a description, of its own"
    )
    for record in records:
        assert record.earlier is not None
        assert any(f"You said: {record.earlier[0]}." in text for text in second)
        assert (record.input_tokens, record.output_tokens) == (110, 6)


@pytest.mark.parametrize("lives", [1, 7, 10, 13, 19])
def test_a_run_killed_between_steps_continues_where_it_was(ask: Ask, tmp_path: Path, lives: int) -> None:
    whole, broken, rest = Talker(), Talker(lives), Talker()
    ask(whole, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        ask(broken, tmp_path / "parts")
    ask(rest, tmp_path / "parts")
    # Only the answers of the batch in progress are lost when it dies.
    assert 20 <= len(broken.asked) + len(rest.asked) <= 20 + 2 * Talker.batch_size
    contents = [
        {(r.example_id, r.repetition): (r.text, r.earlier, r.status, r.key) for r in read_folder(tmp_path / name)}
        for name in ("whole", "parts")
    ]
    assert contents[0] == contents[1]
    ask(model := Talker(), tmp_path / "parts")
    assert not model.asked


def test_a_damaged_step_and_all_later_steps_are_asked_again(ask: Ask, tmp_path: Path) -> None:
    ask(Talker(), tmp_path)
    (tmp_path / "samples.jsonl").unlink()
    steps = tmp_path / "steps.jsonl"
    whole = steps.read_bytes()
    start = whole.index(b'"text":"') + len(b'"text":"')
    steps.write_bytes(whole[:start] + bytes([whole[start] ^ 1]) + whole[start + 1 :])
    ask(model := Talker(), tmp_path)
    assert sum(images == 2 for _, _, images in model.asked) == 1
    answered = StepLog(SampleLog(tmp_path / "none"), read_steps(tmp_path))
    record = next(iter(read_records(steps)))
    key = next(
        r.key for r in read_folder(tmp_path) if (r.example_id, r.repetition) == (record.example_id, record.repetition)
    )
    sample = (record.fingerprint, record.example_id, record.repetition)
    assert len(answered.logged_steps(key, *sample)) == 2
    assert answered.logged_steps(key, "another question", *sample[1:]) == ()
    assert step_key(key, [made_record("s", text="one answer")]) != step_key(key, [made_record("s", text="another")])


def test_a_refusal_on_the_way_ends_the_sample_and_a_cut_answer_marks_it(ask: Ask, tmp_path: Path) -> None:
    ask(Talker(finish="refusal"), tmp_path / "refused")
    assert {record.status.value for record in read_folder(tmp_path / "refused")} == {"refused"}
    ask(Talker(finish="length"), tmp_path / "cut")
    records = list(read_folder(tmp_path / "cut"))
    assert {(record.status.value, record.text is not None) for record in records} == {("truncated", True)}
    assert score(tmp_path / "cut").results.coverage.answered == 10


def test_a_prompt_option_belongs_to_the_run_and_a_score_option_does_not(ask: Ask, tmp_path: Path) -> None:
    ask(Talker(), tmp_path, option="steps=2", repetitions=1)
    scored = score(tmp_path).results
    assert scored.options == {"steps": 2, "case": True}
    assert scored.metrics["accuracy"].mean == pytest.approx(1 / 5)  # "Cup" counts as wrong for example 0
    assert score(tmp_path, options={"case": False}).results.metrics["accuracy"].mean == pytest.approx(2 / 5)
    with pytest.raises(ConfigError, match=r"option steps changes the questions.*Fix"):
        score(tmp_path, options={"steps": 1})
    with pytest.raises(ConfigError, match=r"holds a run with .*Fix"):
        ask(Talker(), tmp_path, option="steps=1", repetitions=1)


@pytest.mark.parametrize("scored_by", [None, {"case": True}, {"case": False}])
def test_metrics_stay_by_their_options_when_a_run_is_started_again_with_others(
    ask: Ask, tmp_path: Path, scored_by: dict[str, object] | None
) -> None:
    def kept() -> dict[tuple[str, object], float]:
        files = [(path, read_results(path)) for path in tmp_path.glob("results*.json")]
        assert all(path.with_name(f"{path.name.replace('results', 'scores')}l").exists() for path, _ in files)
        return {
            ("own" if path.name == "results.json" else "other", results.options["case"]): results.metrics[
                "accuracy"
            ].mean
            for path, results in files
        }

    right = {True: pytest.approx(1 / 5), False: pytest.approx(2 / 5)}
    ask(Talker(), tmp_path, option="case=true", repetitions=1)
    score(tmp_path)
    score(tmp_path, options={"case": False})
    assert kept() == {("own", True): right[True], ("other", False): right[False]}
    ask(Talker(), tmp_path, option="case=false", repetitions=1)
    assert kept() == {("own", True): right[True], ("other", False): right[False]}, "asking changes no figure"
    score(tmp_path, options=scored_by)
    assert {options: metric for (_, options), metric in kept().items()} == right
    assert len(kept()) == 2, "of one record there is one figure"
    assert ("own", True) not in kept()


@pytest.mark.parametrize(
    ("option", "message"),
    [("colour=red", "no option 'colour'"), ("steps=3", "option steps is 3"), ("case=1", "option case is 1")],
)
def test_options_that_cannot_be_used_are_named(data: Path, tmp_path: Path, option: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"{message}.*Fix"):
        run(data, tmp_path, benchmark="words", task="choose", model="oracle", option=option)


def test_a_model_that_scores_the_choices_is_asked_once(ask: Ask, tmp_path: Path) -> None:
    class Ranker(Talker):
        def _answer(self, request: Request, seed: int) -> Completion | Failure:
            self.asked.append((request.request_id, "", len(request.images)))
            assert list(request.choices.values()) == [f"this is {word}" for word in WORDS]
            rng = random.Random(request.request_id)
            return Completion(write_scores({word: rng.random() for word in request.choices}))

    ask(model := Ranker(), tmp_path, repetitions=1)
    assert len(model.asked) == 5
    assert score(tmp_path).results.coverage.statuses["ok"] == 5


def test_results_are_broken_down_by_the_tasks_own_keys(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "all", benchmark="words", task="choose", model="oracle")
    results = score(tmp_path / "all").results
    assert results.metrics["accuracy"].mean == 1.0
    assert {key: set(groups) for key, groups in results.breakdowns.items()} == {
        "split": {"dev", "test"},
        "colour": {"red"},
    }
    assert results.dataset.split == "all"
    run(data, tmp_path / "dev", benchmark="words", task="choose", model="oracle", split="dev")
    assert score(tmp_path / "dev").results.dataset.examples == 2


def test_recorded_answers_become_a_run_that_is_scored_without_videos(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "words": WORDS, "answer": "cup", "said": "It is cup"},
        {"id": 2, "words": WORDS, "answer": "tap", "said": "no idea"},
        {"id": 3, "words": WORDS, "answer": "tap", "said": None},
    ]
    file = tmp_path / "said.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    (folder,) = import_recorded(file, tmp_path / "runs", "said", options={"case": False})
    results = score(folder).results
    statuses = {status: count for status, count in results.coverage.statuses.items() if count}
    assert statuses == {"ok": 1, "parse_error": 1, "infra_error": 1}
    assert results.metrics["accuracy"].mean == pytest.approx(1 / 2)
    assert (results.model.name, results.options) == ("somebody", {"steps": 2, "case": False})
    with pytest.raises(ConfigError, match=r"is there already.*Fix"):
        import_recorded(file, tmp_path / "runs", "said")
    with pytest.raises(ConfigError, match=r"no format 'other'.*Fix"):
        import_recorded(file, tmp_path / "more", "other")


def test_all_benchmarks_of_a_folder_run_in_one_start(
    data: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / "data"
    parent.mkdir()
    (parent / "words").symlink_to(data)
    build(small_release, parent / "kitchen", configs=["relations"], sampling={"limit": 3}, cache=False)
    runner.run(parent, tmp_path / "runs", benchmark="all", model="oracle", repetitions=1, option="case=false")
    means = {name: score(tmp_path / "runs" / name).results.metrics for name in ("words/choose", "barista/relations")}
    assert means["words/choose"]["accuracy"].mean == means["barista/relations"]["micro_f1"].mean == 1.0
    with pytest.raises(ConfigError, match=r"task.*Fix"):
        runner.run(parent, tmp_path / "other", benchmark="all", task="choose", model="oracle")
    with pytest.raises(DataError, match=r"no built dataset in it.*Fix"):
        runner.run(tmp_path / "runs", tmp_path / "other", benchmark="all", model="oracle")


def test_registered_a_release_loads_straight_by_its_benchmarks_name(release: Path, tmp_path: Path) -> None:
    register()
    try:
        settings = {"source": str(release), "frames": "linked", "sampling": {"frames": 3}}
        loaded = datasets.load_dataset("words", "choose", cache_dir=str(tmp_path), **settings)
    finally:
        unregister()
    assert [len(row["frame_indices"]) for row in loaded["dev"]] == [3, 3]
