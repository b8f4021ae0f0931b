"""Statistics of graphs whose every number is known."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from barista_bench import errors
from barista_bench.errors import ModelError
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.statistics import ReleaseStatistics, statistics
from barista_bench.scene_graph.statistics_files import write_statistics
from tests.releases import CUP, MACHINE, document, relation, span, write_release


@pytest.fixture
def stats(tmp_path: Path) -> ReleaseStatistics:
    """Two videos of 40 frames; the second has other ranges, no fps and a broken neighbour."""
    write_release(tmp_path, "a", video=False)
    other = document("portafilter")
    del other["video_metadata"][0]["fps"]
    other["video_metadata"][0]["recording_device_type"] = "smartphone"
    # Two ranges of one record overlap on frames 5 to 9; the other one ends after the cup is last seen on frame 19.
    other["annotations"] = [a for a in other["annotations"] if a["object_id"] != CUP or a["image_id"] < 20]
    other["relations"] = [
        relation(CUP, MACHINE, "position", "under", (0, 10), (5, 15)),
        relation(CUP, MACHINE, "position", "on", (15, 30)),
    ]
    other["attributes"] = [
        {"object_id": CUP, "attribute_type": "color", "value": "red", "image_ranges": [span(0, 10), span(5, 30)]}
    ]
    other["activities"] = [
        {"image_range": span(0, 15), "activity_class_id": "a-place-cup", "display_name": "Put the cup"},
        {"image_range": span(15, 20), "activity_class_id": "a-other", "display_name": "Place cup"},
        {"image_range": span(20, 30), "activity_class_id": None, "display_name": "Place cup"},
    ]
    write_release(tmp_path, "b", other, video=False)
    write_release(tmp_path, "c", b"{", video=False)
    return statistics(SceneGraph(tmp_path))


def test_layers_are_counted(stats: ReleaseStatistics) -> None:
    assert (stats.videos, stats.unusable_videos, stats.frames) == (2, 1, 80)
    # Of each video 40 frames show machine, cup and button, 20 the left and 30 the right hand; b lacks 20 cups.
    assert stats.instances == 170 + 150
    assert (stats.objects, stats.categories) == (10, 5)
    assert stats.category_counts["coffee machine"].instances == 80
    assert asdict(stats.category_counts["coffee cup"]) == {"instances": 60, "objects": 2, "videos": 2}
    assert list(stats.category_counts) == ["button", "coffee machine", "coffee cup", "right hand", "left hand"]


def test_relations_and_attributes_count_where_their_ends_are_boxed_and_once_a_record(stats: ReleaseStatistics) -> None:
    # Video a: part of 40, under 40, left holds 20 (boxed to 19), right holds [10, 15) and [30, 40).
    # Video b: under 15, on 5.
    assert stats.predicate_counts == {"position": {"under": 55, "part of": 40, "on": 5}, "human_actions": {"holds": 35}}
    assert (stats.relation_rows, stats.relation_ranges, stats.predicates) == (135, 8, 4)
    # Video a: the cup is white and the machine of a type all along, and extracting [20, 30). Video b: red [0, 20).
    by_type = {"color": {"white": 40, "red": 20}, "type": {"capsule": 40}, "state": {"extracting": 10}}
    assert stats.attribute_counts == by_type
    assert (stats.attribute_rows, stats.attribute_ranges) == (110, 5)


def test_objects_and_relations_on_a_frame(stats: ReleaseStatistics) -> None:
    # Video a: 4, 5 and 4 objects on frames 0-9, 10-19, 20-39; video b: 4, 5 and 3.
    assert stats.objects_per_frame.histogram == [0, 0, 0, 20, 40, 20]
    assert (stats.objects_per_frame.mean, stats.objects_per_frame.median, stats.objects_per_frame.most) == (4.0, 4.0, 5)
    # Video b: one relation on each of the frames 0-19, none on the other 20.
    assert stats.relations_per_frame.histogram[:2] == [20, 20]
    assert stats.relations_per_frame.mean == pytest.approx(135 / 80)
    assert stats.relations_per_frame.mean_where_any == pytest.approx(135 / 60)


def test_segments_count_by_class_and_those_without_one_apart(stats: ReleaseStatistics) -> None:
    assert (stats.activity_segments, stats.activity_classes, stats.segments_without_class) == (4, 3, 1)
    # The class is called as it is first; another class of that name shows its id.
    assert stats.activity_counts == {"Place cup (a-place-cup)": 2, "Place cup (a-other)": 1, "Press button": 1}
    assert (stats.process_steps, stats.step_classes, stats.step_counts) == (2, 1, {"Extract coffee": 2})


def test_videos_are_counted_by_kind_and_durations_are_known_seconds(stats: ReleaseStatistics) -> None:
    assert stats.preparation_counts == {"capsule": 1, "unknown": 1}
    assert stats.device_counts == {"smart glasses": 1, "smartphone": 1}
    assert stats.resolution_counts == {"96x64": 2}
    assert stats.video_durations.values == [1.3333]
    assert stats.activity_durations.values == [0.6667, 0.6667]
    assert stats.step_durations.mean == 1.3333


@pytest.mark.full
def test_the_command_writes_json_tables_and_pictures(stats: ReleaseStatistics, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = write_statistics(stats, tmp_path / "out")
    assert json.loads(paths[0].read_text(encoding="utf-8")) == asdict(stats)
    tables = paths[1].read_text(encoding="utf-8")
    assert "| instances | 320 | 3,610,000 |" in tables
    assert "| position | under | 55 | 40.7% |" in tables
    plots = ("overview", "categories", "activities", "steps", "predicates", "attributes")
    assert [path.name for path in paths[2:]] == [f"statistics_{name}.{end}" for name in plots for end in ("svg", "pdf")]
    again = write_statistics(stats, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


@pytest.mark.full
def test_names_from_the_file_break_no_table_and_no_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    content = document()
    content["categories"][0]["name"] = "<b>|$\\frac{1$ " + "x" * 500
    content["activities"][0]["display_name"] = "Pour\n$_{"
    root = write_release(tmp_path / "root", content=content, video=False)
    paths = write_statistics(statistics(SceneGraph(root)), tmp_path / "out")
    tables = paths[1].read_text(encoding="utf-8")
    assert "<b>" not in tables
    assert r"\|$\\frac" in tables


@pytest.mark.full
def test_a_release_without_segments_and_relations_is_shown_too(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    content = document()
    content["annotations"], content["activities"], content["process_steps"] = [], [], []
    root = write_release(tmp_path / "root", content=content, video=False)
    metrics = statistics(SceneGraph(root))
    assert (metrics.instances, metrics.relation_rows, metrics.attribute_rows) == (0, 0, 0)
    assert metrics.objects_per_frame.histogram == [40]
    assert len(write_statistics(metrics, tmp_path / "out")) == 2 + 2 * 6


def test_without_matplotlib_the_tables_are_written_and_the_extra_is_named(
    stats: ReleaseStatistics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"barista_bench\[viz\]"):
        write_statistics(stats, tmp_path / "out")
    assert (tmp_path / "out/statistics.md").is_file()
    assert len(write_statistics(stats, tmp_path / "out", plots=False)) == 2


def test_real_clips_have_statistics(real_release: Path) -> None:
    metrics = statistics(SceneGraph(real_release))
    assert metrics.instances == sum(c.instances for c in metrics.category_counts.values()) > 0
