"""The small release: read like the real one, with every kind of problem set, and the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.benchmarks.vista import TASKS, counts, open_release
from barista_bench.benchmarks.vista.mini import write_mini
from barista_bench.core.task import Example
from barista_bench.errors import DataError
from barista_bench.media.video import video_facts


def test_the_small_release_has_every_environment_and_kind_of_set(mini: Path) -> None:
    release = open_release(mini)
    assert not [problem for problem in release.problems if problem.severity == "error"]
    assert {own.environment for own in release.sets.values()} == {"virtual_home", "real_world", "minecraft"}
    assert {own.release_level for own in release.sets.values()} == {
        "foundation",
        "extrapyramidal",
        "level_2",
        "level_3",
    }
    assert {"objects", "actions", "general", "permutation"} <= {own.type for own in release.sets.values()}
    (row,) = counts(release, ()).itertuples()
    assert row.problem_sets == 10
    assert row.rows == row.entries + 1 == row.videos + 1  # one video fits two descriptions
    assert all(2 <= len(own.videos) <= 6 for own in release.sets.values())


def test_every_video_of_the_small_release_is_there_and_becomes_an_example(mini: Path) -> None:
    release = open_release(mini)
    for task in TASKS:
        items = list(task().examples(release, task.sampling))
        assert items
        assert all(isinstance(item, Example) for item in items)


def test_permutations_hold_the_same_clips_in_other_orders(mini: Path) -> None:
    release = open_release(mini)
    assert "permutation" in {own.type for own in release.sets.values()}
    for own in release.sets.values():
        if own.type == "permutation":
            facts = [video_facts(release.video_path(video.video_id)) for video in own.videos]
            assert len({fact.frame_count for fact in facts}) == 1
            steps = [sorted(text.replace(";", "").split()) for text in own.descriptions.values()]
            assert len(own.descriptions) == own.level
            assert all(step == steps[0] for step in steps)


def test_general_sets_share_beginnings_as_they_say(mini: Path) -> None:
    sets = open_release(mini).sets.values()
    assert "general" in {own.type for own in sets}
    for own in sets:
        if own.type == "general":
            assert list(own.shared_prefix.values()) == [3, 2, 1, 0]


def test_the_same_kitchen_gives_the_same_files(mini: Path, small_kitchen: Path, tmp_path: Path) -> None:
    write_mini(small_kitchen, tmp_path / "again")

    def files(root: Path) -> dict[str, bytes]:
        return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}

    assert files(tmp_path / "again") == files(mini)


def test_a_folder_that_holds_something_is_not_written_into(mini: Path, small_kitchen: Path) -> None:
    with pytest.raises(DataError, match=r"is not empty.*Remedy"):
        write_mini(small_kitchen, mini)


def test_a_kitchen_of_too_few_activities_is_refused(small_release: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"shows \d activities, fewer than 6.*Remedy"):
        write_mini(small_release, tmp_path / "out")
    assert not (tmp_path / "out").exists()
