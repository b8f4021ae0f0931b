"""`run --shots N`: worked examples of the split train, of other videos, balanced by label and by seed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from barista_bench.benchmarks import task_class
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example, FrameRef
from barista_bench.core.prompt import ImagePart
from barista_bench.data.dataset import BuiltExamples, open_examples
from barista_bench.errors import BudgetError, ConfigError
from barista_bench.hub.number_checks import check_numbers
from barista_bench.models import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.runs.ask import runner
from barista_bench.runs.ask.shots import _balanced
from barista_bench.runs.score.scoring import score
from tests.conftest import Use
from tests.one_run import run


class Listener:
    """A model that keeps its requests."""

    box_format, batch_size = DEFAULT_BOX_FORMAT, 4

    def __init__(self) -> None:
        self.identity, self.requests = ModelIdentity("listener"), list[Request]()

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion]]:
        for request in requests:
            request.check_images()
        self.requests += requests
        return [[Completion("ANSWER: A", input_tokens=50, output_tokens=3)] * len(each.seeds) for each in requests]


@pytest.fixture
def one_content(loads_model: object) -> Listener:
    """For the fixture's videos as they are: all have the same content."""
    use: Use = loads_model(runner)  # type: ignore[operator]
    model = Listener()
    use(model)
    return model


@pytest.fixture
def listener(one_content: Listener, monkeypatch: pytest.MonkeyPatch) -> Listener:
    """For videos that differ."""
    monkeypatch.setattr(
        BuiltExamples, "video_hashes", lambda self: {each.video_id: each.video_id for each in self.examples}
    )
    return one_content


def ask(data: Path, folder: Path, **settings: object) -> None:
    run(data, folder, **{"task": "activity", "model": "served:listener", "repetitions": 1, "split": "test", **settings})


def test_each_question_follows_worked_examples_of_other_videos(
    six_tasks: Path, tmp_path: Path, listener: Listener
) -> None:
    ask(six_tasks, tmp_path / "run", shots=3)
    train = open_examples(six_tasks, "barista", "activity", split="train")
    task = task_class("barista", "activity")()
    answers = {task.reference_answer(example, DEFAULT_BOX_FORMAT) for example in train.examples}
    assert listener.requests
    for request in listener.requests:
        text = request.prompt.as_text()
        assert [text.count(f"Example {number}:") for number in (1, 2, 3, 4)] == [1, 1, 1, 0]
        shown = text.split("Right answer:\n")[1:]
        assert all(any(each.startswith(answer) for answer in answers) for each in shown)
        assert len(request.images) == 4 * len(train.examples[0].frames)
        places = [part.index for part in request.prompt.parts if isinstance(part, ImagePart)]
        assert places == sorted(places)


def test_number_and_seed_are_part_of_the_identity_and_of_the_label(
    six_tasks: Path, tmp_path: Path, listener: Listener
) -> None:
    ask(six_tasks, tmp_path / "run", shots=1)
    count = len(listener.requests)
    ask(six_tasks, tmp_path / "run", shots=1)
    assert len(listener.requests) == count
    with pytest.raises(ConfigError, match="shots_seed"):
        ask(six_tasks, tmp_path / "run", shots=1, shots_seed=1)
    results = score(tmp_path / "run").results
    assert results.model.label == "listener + 1 shots"
    with pytest.raises(Exception, match="no leaderboard takes worked examples"):
        check_numbers(results, "results.json")


def test_limits_count_the_worked_examples(six_tasks: Path, tmp_path: Path, listener: Listener) -> None:
    from barista_bench.models.served.requests import estimated_input_tokens

    ask(six_tasks, tmp_path / "one", shots=1, limit=1)
    (request,) = listener.requests
    most = estimated_input_tokens(request) + 4096 - 1
    with pytest.raises(BudgetError):
        ask(six_tasks, tmp_path / "two", shots=1, limit=1, max_tokens_total=most)
    assert len(listener.requests) == 1


@pytest.mark.parametrize("split", ["train", "all"])
def test_questions_of_the_split_train_are_refused(
    six_tasks: Path, tmp_path: Path, listener: Listener, split: str
) -> None:
    with pytest.raises(ConfigError, match="--split test"):
        ask(six_tasks, tmp_path / "run", shots=1, split=split)


def test_a_video_of_another_name_is_the_same_video(six_tasks: Path, tmp_path: Path, one_content: Listener) -> None:
    with pytest.raises(ConfigError, match="has 0 examples of other videos"):
        ask(six_tasks, tmp_path / "run", shots=1)
    assert not one_content.requests


def test_more_shots_than_there_are_are_refused(six_tasks: Path, tmp_path: Path, listener: Listener) -> None:
    with pytest.raises(ConfigError, match="fewer than 500"):
        ask(six_tasks, tmp_path / "run", shots=500)


def test_labels_take_turns_by_seed() -> None:
    task = task_class("barista", "activity")()
    labels = [*["common"] * 20, "rare 20", "rare 21", "rare 22"]
    frames = (FrameRef("v", 0),)
    examples = [
        Example(f"e{number}", "barista", "activity", label, frames, {}, {}) for number, label in enumerate(labels)
    ]
    orders = [_balanced(task, examples, seed) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(23))
    assert {examples[place].label for place in orders[0][:4]} == {"common", "rare 20", "rare 21", "rare 22"}
