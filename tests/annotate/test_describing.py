"""A vision-language model's proposals: asked once, kept through kills, unverified until a person accepts them."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.annotate.decisions import Decisions, accept
from barista_bench.annotate.describing import VideoDescription, describe
from barista_bench.annotate.exporting import export_project
from barista_bench.annotate.project import VideoFiles, open_project
from barista_bench.annotate.records import DescribedFile, SegmentsFile
from barista_bench.cli.commands import app
from barista_bench.core.boxes import BoxFormat
from barista_bench.errors import ConfigError
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request
from tests.annotate.projects import VIDEO, annotated, started, tracked
from tests.kills import in_child

GREEDY = GenerationConfig(temperature=0)


class Scripted:
    """Says that object 1 is full and is on object 2, only on the first keyframe, and that each stretch is a pour."""

    box_format = BoxFormat()
    batch_size = 2

    def __init__(self, *, failing: int = -1, killed_at: int = -1, texts: dict[int, str] | None = None) -> None:
        self.identity = ModelIdentity("scripted")
        self.requests: list[Request] = []
        self._failing, self._killed_at, self._texts = failing, killed_at, texts or {}

    def generate(self, requests: list[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        return [[self._answer(request)] for request in requests]

    def _answer(self, request: Request) -> Completion | Failure:
        number = len(self.requests)
        self.requests.append(request)
        request.check_images()
        if number == self._killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == self._failing:
            return Failure("the server is away")
        if number in self._texts:
            return Completion(self._texts[number])
        assert request.schema is not None
        if "verb" in request.schema["properties"]:  # type: ignore[operator]
            answer: dict[str, Any] = {"verb": "pour", "thing": "milk"}
        elif number == 0:
            relation = {"source": 1, "target": 2, "type": "position", "value": "on"}
            answer = {"attributes": [{"object": 1, "type": "state", "value": "full"}], "relations": [relation]}
        else:
            answer = {"attributes": [], "relations": []}
        jsonschema.validate(answer, request.schema)
        return Completion(f"Here it is: {json.dumps(answer)}")


@pytest.fixture
def video(small_kitchen: Path, tmp_path: Path) -> VideoFiles:
    """Annotated and propagated."""
    return tracked(small_kitchen, tmp_path)


def described_by(video: VideoFiles, model: Scripted) -> VideoDescription:
    (outcome,) = describe(open_project(video.folder.parent), model, GREEDY)  # type: ignore[arg-type]
    return outcome


def test_claims_hold_from_their_keyframe_to_the_next_and_activities_over_their_stretch(video: VideoFiles) -> None:
    model = Scripted()
    outcome = described_by(video, model)
    segments = video.read(SegmentsFile).segments
    keyframes = video.accepted().keyframes
    assert outcome == VideoDescription(VIDEO, len(keyframes) + len(segments), len(keyframes) + len(segments))
    described = video.read(DescribedFile)
    assert not described.verified
    first, second = sorted(keyframes[0].masks)[:2]
    until_second_keyframe = [(0, keyframes[1].frame)]
    (attribute,), (relation,) = described.layers.attributes, described.layers.relations
    assert (attribute.object, attribute.value, attribute.ranges) == (first, "full", until_second_keyframe)
    assert (relation.source, relation.target, relation.ranges) == (first, second, until_second_keyframe)
    assert [(item.name, item.range) for item in described.layers.activities] == [("Pour milk", s) for s in segments]


def test_a_keyframe_is_shown_plain_and_with_marks_a_stretch_by_frames_in_order(video: VideoFiles) -> None:
    model = Scripted()
    described_by(video, model)
    first, last = model.requests[0], model.requests[-1]
    plain, marked = first.images
    assert plain.size == marked.size == (video.source.width, video.source.height)
    assert plain.tobytes() != marked.tobytes()
    objects = video.accepted().objects
    for number, name in enumerate(sorted(video.accepted().keyframes[0].masks), start=1):
        assert f"{number}: {objects[name]}" in first.prompt.as_text()
    assert len({image.tobytes() for image in last.images}) == 4


def test_nothing_is_exported_until_a_person_accepts_it(video: VideoFiles, tmp_path: Path) -> None:
    (video.folder / "accepted_layers.json").unlink()
    described_by(video, Scripted())
    assert export_project(video.folder.parent, tmp_path / "a").videos[VIDEO].relations == 0
    layers = video.read(DescribedFile).layers
    accept(open_project(video.folder.parent), Decisions(video=VIDEO, by="anna", layers=layers))
    statistics = export_project(video.folder.parent, tmp_path / "b").videos[VIDEO]
    assert (statistics.attributes, statistics.relations) == (1, 1)
    assert statistics.activities == len(layers.activities)


def test_after_a_kill_only_unanswered_requests_are_asked_again(video: VideoFiles) -> None:
    quiet = Scripted()
    described_by(video, quiet)
    whole = video.file(DescribedFile).read_bytes()
    video.file(DescribedFile).unlink()
    assert in_child(lambda: described_by(video, Scripted(killed_at=3))) == -signal.SIGKILL
    assert len(video.read(DescribedFile).answers) == 2  # the first batch
    again = Scripted()
    again.requests = quiet.requests[:2]  # as if it had been asked these
    described_by(video, again)
    assert [request.request_id for request in again.requests] == [request.request_id for request in quiet.requests]
    assert video.file(DescribedFile).read_bytes() == whole


def test_a_failure_is_asked_again_and_an_unusable_answer_is_counted(video: VideoFiles) -> None:
    assert "first: the server is away. Fix" in described_by(video, Scripted(failing=1)).problem
    model = Scripted()
    assert described_by(video, model).answered == described_by(video, Scripted()).questions
    assert len(model.requests) == 1
    video.file(DescribedFile).unlink()
    strange = {"attributes": [{"object": 99, "type": "state", "value": "full"}], "relations": []}
    nested = '{"attributes": ' + "[" * 100_000 + "}"
    outcome = described_by(video, Scripted(texts={0: "I cannot tell", 1: json.dumps(strange), 2: nested + "\ud800"}))
    assert outcome.unusable == 3
    assert outcome.answered == outcome.questions


def test_an_activity_of_no_words_is_unusable_and_one_of_many_is_cut(video: VideoFiles) -> None:
    first = len(video.accepted().keyframes)
    long, blank = (json.dumps({"verb": text, "thing": text}) for text in ("v" * 200, " "))
    assert described_by(video, Scripted(texts={first: long, first + 1: blank})).unusable == 1
    (activity,) = video.read(DescribedFile).layers.activities
    assert activity.name == "V" + "v" * 199


def test_a_model_that_reads_only_text_is_refused_before_the_first_request(video: VideoFiles) -> None:
    model = Scripted()
    model.reads_text_alone = True  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"scripted: reads text alone.*Fix: ask a vision-language model"):
        next(describe(video.project, model, GREEDY))
    assert not model.requests


def test_a_video_without_tracks_costs_that_video(small_kitchen: Path, tmp_path: Path) -> None:
    video = annotated(small_kitchen, started(small_kitchen, tmp_path))
    assert "has no tracks yet" in described_by(video, Scripted()).problem


def test_the_command_takes_the_settings_of_a_run(video: VideoFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[tuple[str, float]] = []

    def load_model(settings: Any, tasks: object) -> Scripted:
        names.append((settings.model, settings.temperature))
        return Scripted()

    monkeypatch.setattr("barista_bench.runs.ask.catalog.load_model", load_model)
    folder = str(video.folder.parent)
    command = ["annotate", "describe", folder, "--model", "served:vlm", "--temperature", "0"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert names == [("served:vlm", 0.0)]
    assert "questions answered, 0 claims unusable" in result.output
    refused = CliRunner().invoke(app, ["annotate", "describe", folder, "--model", "oracle"])
    assert refused.exit_code == 1
    assert "cannot describe images" in refused.output
    assert msgspec.json.decode(video.file(DescribedFile).read_bytes())["verified"] is False
