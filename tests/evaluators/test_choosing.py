"""A run asks a part of the examples: by video, id or metadata, or those that another run failed to answer."""

import json
from pathlib import Path

import pytest

from barista_bench.data.frozen import read_frozen
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.number_checks import check_numbers
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import read_scored
from tests.evaluators.recorded import barista, recorded_run
from tests.one_run import run


def asked(folder: Path) -> set[str]:
    return {json.loads(line)["example_id"] for line in (folder / "samples.jsonl").read_text().splitlines()}


def test_videos_metadata_and_ids_choose_together(dataset: Path, tmp_path: Path) -> None:
    examples = list(read_frozen(dataset / "frozen/relations.jsonl", "barista"))
    video, key = examples[0].video_id, "preparation"
    value = str(examples[0].metadata[key])
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(example.example_id for example in examples[::2]))
    words = ("--videos", video, "--where", f"{key}={value}", "--example-ids", ids)
    flags = ("--model", "oracle", "--task", "relations", "--repetitions", 1)
    barista("run", dataset, *flags, *words, "--out", tmp_path / "part")
    wanted = {e.example_id for e in examples[::2] if e.video_id == video and str(e.metadata[key]) == value}
    assert 0 < len(wanted) < len(examples)
    assert asked(tmp_path / "part/relations") == wanted
    output = barista("score", tmp_path / "part").output
    assert f"PARTIAL: {len(wanted)} OF {len(examples)} EXAMPLES (videos {video}; ids in ids.txt" in output


@pytest.fixture(scope="module")
def part(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("part") / "run"
    video = next(iter(read_frozen(dataset / "frozen/relations.jsonl", "barista"))).video_id
    run(dataset, folder, repetitions=1, videos=[video])
    return folder


def test_a_part_never_ranks_beside_whole_sets(part: Path, dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "whole", repetitions=1)
    for folder in (part, tmp_path / "whole"):
        barista("score", folder)
    results = [read_results(folder / "results.json") for folder in (part, tmp_path / "whole")]
    assert results[0].comparability != results[1].comparability
    with pytest.raises(DataError, match="a part of the set"):
        check_numbers(results[0], "results.json")
    barista("report", part, tmp_path / "whole", "--out", tmp_path / "report")
    assert "was asked a part of the set" in (tmp_path / "report/report.md").read_text(encoding="utf-8")


def test_the_same_choice_goes_on_and_another_is_refused(part: Path, dataset: Path) -> None:
    choice = read_run(part).data.part
    assert choice is not None
    video = next(iter(read_frozen(dataset / "frozen/relations.jsonl", "barista"))).video_id
    assert run(dataset, part, repetitions=1, videos=[video]).asked == 0
    with pytest.raises(ConfigError, match="choice"):
        run(dataset, part, repetitions=1)


def test_a_choice_of_all_is_the_whole_set(dataset: Path, tmp_path: Path) -> None:
    videos = {example.video_id for example in read_frozen(dataset / "frozen/relations.jsonl", "barista")}
    run(dataset, tmp_path / "run", repetitions=1, videos=sorted(videos))
    assert read_run(tmp_path / "run").data.part is None


def test_only_what_another_run_failed_to_answer(six_tasks: Path, tmp_path: Path) -> None:
    ids = [example.example_id for example in read_frozen(six_tasks / "frozen/activity.jsonl", "barista")]
    failed = set(ids[::5])
    first = recorded_run(
        six_tasks, tmp_path / "first", "activity", lambda e: "no idea" if e.example_id in failed else "ANSWER: A"
    )
    second = recorded_run(six_tasks, tmp_path / "second", "activity", lambda e: "ANSWER: A", failed_in=first)
    assert asked(second) == failed
    assert read_scored(second).results.coverage.expected == len(failed)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"videos": ["nowhere"]}, "no example of 'nowhere'"),
        ({"where": ["colour=red"]}, "key of the metadata"),
        ({"where": ["preparation"]}, "KEY=VALUE"),
        ({"where": ["preparation=tea"]}, "no example is chosen"),
        ({"failed_in": "nowhere"}, "no run of relations"),
    ],
)
def test_what_chooses_nothing_is_refused(
    dataset: Path, tmp_path: Path, settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        run(dataset, tmp_path / "run", **settings)


def test_ids_that_are_no_examples_are_counted(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("ghost\n\nspectre\n")
    with pytest.raises(ConfigError, match="2 of 2 ids are no examples here, first 'ghost'"):
        run(dataset, tmp_path / "run", example_ids=tmp_path / "ids")
