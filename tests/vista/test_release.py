"""Reading ViSTa's files: the real annotations as counted by hand, and every kind of mistake by name."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.benchmarks.vista.release import VistaRelease, open_release
from barista_bench.benchmarks.vista.release_files import read_description
from barista_bench.errors import DataError
from tests.vista.made import add_rows, write_set

TWO = {"on": "The lamp is on", "off": "The lamp is off"}
PLAIN = [("foundation/on_v_off/lamp/0.mp4", "on"), ("foundation/on_v_off/lamp/1.mp4", "off")]
LAMP = "alfred/foundation/on_v_off/lamp"
FULL = {"example_gpt": "1. A lamp.", "metadata": {"concepts": {"objects": ["lamp"]}}}


def problems(release: VistaRelease) -> list[str]:
    return [str(problem) for problem in release.problems]


def test_sets_and_videos_by_level_and_type_equal_the_paper_but_for_one_permutation(real_vista: VistaRelease) -> None:
    rows = [len(real_vista.rows[set_id]) for set_id in real_vista.sets]
    videos = defaultdict[tuple[str, int], set[str]](set)
    for each in real_vista.sets.values():
        videos[each.environment, each.level] |= {video.video_id for video in each.videos}
    entries = sum(len(each.videos) for each in real_vista.sets.values())
    assert (len(rows), sum(rows), entries, len(set().union(*videos.values()))) == (492, 4515, 4494, 4340)
    assert {key: len(ids) for key, ids in videos.items()} == {
        **{("virtual_home", level): n for level, n in enumerate((1739, 174, 207, 207, 207, 207, 207, 207), start=1)},
        **{("minecraft", level): n for level, n in ((1, 32), (2, 7), (3, 14))},
        **{("real_world", level): n for level, n in ((1, 885), (2, 43), (3, 51), (4, 51), (5, 51), (8, 51))},
    }
    virtual = [problem_set for problem_set in real_vista.sets.values() if problem_set.environment == "virtual_home"]
    # Tables 1 to 3 of the paper; it has 32 permutations of level 2, where the release has 33.
    kinds = [problem_set.type for problem_set in virtual]
    assert [kinds.count(kind) for kind in ("objects", "object_properties", "actions")] == [7, 9, 29]
    for level in range(2, 9):
        kinds = [problem_set.type for problem_set in virtual if problem_set.level == level]
        assert (kinds.count("general"), kinds.count("permutation"), len(kinds)) == (12, 33, 45)


def test_every_irregularity_of_the_real_release_is_named(real_vista: VistaRelease) -> None:
    assert not [problem for problem in real_vista.problems if problem.severity == "error"]
    by_key = Counter(p.file if p.file == "metadata.csv" else p.key for p in real_vista.problems)
    assert by_key == {"metadata": 31, "example_gpt": 11, "metadata.csv": 1}
    (several,) = [problem for problem in real_vista.problems if problem.file == "metadata.csv"]
    # The whole difference between 4,515 rows and 4,494 entries.
    assert several.key == "minecraft/foundation/multilabel"
    with_several = {i for i, s in real_vista.sets.items() if any(len(video.labels) > 1 for video in s.videos)}
    assert with_several == {several.key}
    assert "53 rows for 32 videos, of which 17" in several.what
    others = [name for name in real_vista.unused_files if not name.rpartition("/")[2].startswith("_")]
    assert (len(real_vista.unused_files), others) == (20 + 1, ["real_life/datasheet.json"])


def test_the_release_is_found_in_the_folder_or_its_parent(tmp_path: Path) -> None:
    write_set(tmp_path / "data", LAMP, PLAIN, TWO, **FULL)
    assert open_release(tmp_path).root == open_release(tmp_path / "data").root == tmp_path / "data"
    with pytest.raises(DataError, match=r"no folder tasks/.*Fix"):
        open_release(tmp_path / "data" / "tasks")


def test_a_set_without_faults_is_read_without_problems(tmp_path: Path) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL)
    release = open_release(tmp_path)
    (problem_set,) = release.sets.values()
    assert problems(release) == []
    # YAML would have read `on` and `off` as true and false.
    assert problem_set.descriptions == TWO
    assert (problem_set.set_id, problem_set.environment, problem_set.level) == (LAMP, "virtual_home", 1)
    assert problem_set.type == "object_properties"
    assert [(video.video_id, video.labels, video.entry) for video in problem_set.videos] == [
        ("alfred/foundation/on_v_off/lamp/0.mp4", ("on",), 0),
        ("alfred/foundation/on_v_off/lamp/1.mp4", ("off",), 1),
    ]


def test_drafts_are_passed_over_and_listed(tmp_path: Path) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL)
    (tmp_path / "tasks/alfred/_template.yaml").write_text("{{ not: yaml")
    (tmp_path / "tasks/alfred/_notes").mkdir()
    (tmp_path / "tasks/alfred/_notes/x.yaml").write_text("")
    release = open_release(tmp_path)
    assert list(release.unused_files) == ["alfred/_notes/x.yaml", "alfred/_template.yaml"]
    assert problems(release) == []


def test_shared_prefixes_and_slicing_are_kept(tmp_path: Path) -> None:
    lengths = [{"description": "The lamp is off", "shared_prefix": 2}]
    metadata = {"is_consistent_wrt_slicing": True, "prefix_lens": lengths}
    write_set(tmp_path, LAMP, PLAIN, TWO, example_gpt="e", metadata=metadata)
    (problem_set,) = open_release(tmp_path).sets.values()
    assert (problem_set.shared_prefix, problem_set.slicing_consistent) == ({"off": 2}, True)


@pytest.mark.parametrize(
    ("entries", "kept", "said"),
    [
        ([*PLAIN, ("x.mp4", "dim")], 2, "error.*data.json: \\[2\\].label.*'dim' has no description"),
        ([*PLAIN, ("x.mp4", "on,off")], 2, "'on,off' has no description"),
        ([*PLAIN, ("../../x.mp4", "on")], 2, "error.*data.json: \\[2\\].path.*not a path below the videos"),
        ([*PLAIN, ("/etc/passwd", "on")], 2, "not a path below the videos"),
        ([*PLAIN, (PLAIN[0][0], "on")], 2, "warning.*appears in this set twice, with the same label"),
        ([*PLAIN, (PLAIN[0][0], "off")], 2, "error.*appears in this set twice, with different labels"),
        (PLAIN[:1], 1, "warning.*holds one video"),
        (PLAIN[:1], 1, "warning.*no video fits off"),
    ],
)
def test_a_bad_entry_costs_itself_and_is_named(
    tmp_path: Path, entries: list[tuple[str, str]], kept: int, said: str
) -> None:
    write_set(tmp_path, LAMP, entries, TWO, **FULL)
    release = open_release(tmp_path)
    assert len(release.sets[LAMP].videos) == kept
    assert any(re.search(said, line) for line in problems(release)), problems(release)


def test_several_labels_are_read_where_the_release_has_them(tmp_path: Path) -> None:
    set_id = "minecraft/foundation/multilabel"
    write_set(tmp_path, set_id, [("a.mp4", "on,off"), ("b.mp4", "on")], TWO)
    release = open_release(tmp_path)
    assert [video.labels for video in release.sets[set_id].videos] == [("on", "off"), ("on",)]
    assert any("has 3 rows for 2 videos, of which 1 fit several" in line for line in problems(release))
    assert (len(release.rows[set_id]), len(release.sets[set_id].videos)) == (3, 2)


def bombs(level: int = 9) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, level)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("label_prompts: [", r"tap\.yaml: .*line 2: did not find"),
        (bombs(), "aliases"),
        ("[" * 100_000, "nested too deeply"),
        ("label_prompts: {a: x, a: y}\nprompt_gpt: p", "'a' appears here twice"),
        ("label_prompts: {a: [x]}\nprompt_gpt: p", "label_prompts"),
        ("label_prompts: {a: x}", "prompt_gpt"),
        ("- 1", "Expected `object`"),
        ("", "Expected `object`"),
        ("!!python/object/apply:os.system [ls]", "Expected `object`"),
        ("label_prompts: {a: \x00}", "special characters|not allowed|unacceptable"),
        ("x: " + "y" * 2**20, "larger than"),
    ],
)
def test_a_broken_description_costs_its_set_and_is_named(tmp_path: Path, text: str, said: str) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL)
    broken = write_set(tmp_path, "alfred/foundation/toggle/tap", PLAIN, TWO, **FULL)
    broken.write_text(text)
    release = open_release(tmp_path)
    assert list(release.sets) == [LAMP]
    (problem,) = [problem for problem in release.problems if problem.severity == "error"]
    assert problem.file == "tasks/alfred/foundation/toggle/tap.yaml"
    assert re.search(said, f"{problem.key}: {problem.what}"), problem.what
    assert "Fix" in str(problem)


@pytest.mark.parametrize("text", [None, "{", '[{"path": 1, "label": "on"}]', '[{"path": "x"}]', "[" * 100_000, '"x"'])
def test_a_missing_or_broken_list_of_videos_costs_its_set(tmp_path: Path, text: str | None) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL)
    broken = write_set(tmp_path, "alfred/foundation/toggle/tap", PLAIN, TWO, **FULL).with_name("tap_data.json")
    if text is None:
        broken.unlink()
    else:
        broken.write_text(text)
    release = open_release(tmp_path)
    assert list(release.sets) == [LAMP]
    assert any(problem.severity == "error" and problem.file.endswith("tap_data.json") for problem in release.problems)


def test_a_release_without_usable_sets_is_refused(tmp_path: Path) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL).write_text("[")
    with pytest.raises(DataError, match=r"holds no problem set \(of 1\) that can be used .*Fix"):
        open_release(tmp_path)


@pytest.mark.parametrize("set_id", ["mars/foundation/objects/x", "alfred/level_0/remix/x", "alfred/levels/remix/x"])
def test_a_set_in_an_unknown_place_is_left_out_and_named(tmp_path: Path, set_id: str) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL)
    write_set(tmp_path, set_id, PLAIN, TWO, **FULL)
    release = open_release(tmp_path)
    assert list(release.sets) == [LAMP]
    assert any("no environment and level that are known" in line for line in problems(release))


@pytest.mark.parametrize(
    ("set_id", "entries", "changes", "said"),
    [
        ("alfred/foundation/juggling/x", PLAIN, {}, "unknown type 'juggling'"),
        (LAMP, PLAIN, {"metadata": {"concepts": ["lamp"]}}, "metadata.concepts: Expected `object`"),
        (LAMP, PLAIN, {"descriptions": {"on": "A lamp", "off": "A lamp"}}, "two labels have one description"),
        (LAMP, [*PLAIN, ("new.mp4", "on")], {}, "has no row for 'alfred/new.mp4'"),
    ],
)
def test_odd_fields_of_a_set_are_kept_and_named(
    tmp_path: Path, set_id: str, entries: list[tuple[str, str]], changes: dict[str, Any], said: str
) -> None:
    description = write_set(tmp_path, set_id, PLAIN, **{"descriptions": TWO, **FULL, **changes})
    listed = [{"path": path, "label": label} for path, label in entries]
    description.with_name(f"{description.stem}_data.json").write_text(json.dumps(listed))
    release = open_release(tmp_path)
    assert len(release.sets[set_id].videos) == len(entries)
    assert release.sets[set_id].type == ("object_properties" if set_id == LAMP else "other")
    assert any(said in line for line in problems(release)), problems(release)


def row(**changes: object) -> tuple[object, ...]:
    columns = {
        "video": "alfred/foundation/on_v_off/lamp/0.mp4",
        "level": 1,
        "description": "The lamp is on",
        "environment": "alfred",
        "problem_set_type": "on_v_off",
        "problem_set": f"tasks/{LAMP}.yaml",
    }
    return tuple({**columns, **changes}.values())


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (row(video="alfred/x.mp4"), "has a row that no entry has, 'alfred/x.mp4'"),
        (row(description="Dark"), "has a row that no entry has,.*'Dark'"),
        (row(level=3, video="alfred/x.mp4"), "says level 1, 3, the folder 1"),
        (row(environment="real_life"), "says environment real_world, virtual_home, the folder virtual_home"),
        (row(problem_set_type="remix"), "says problem_set_type on_v_off, remix, the folder on_v_off"),
        (
            row(problem_set="tasks/alfred/foundation/toggle/gone.yaml"),
            "toggle/gone: its 1 rows name a set without files",
        ),
    ],
)
def test_rows_that_say_otherwise_than_the_files_are_named(tmp_path: Path, extra: tuple[object, ...], said: str) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL)
    add_rows(tmp_path, [extra])
    lines = problems(open_release(tmp_path))
    assert any(re.search(said, line) for line in lines), lines


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.unlink(),
        lambda table: table.write_text("a,b\n1,2\n"),
        lambda table: table.write_bytes(b"\xff\xfe"),
        lambda table: table.write_text(table.read_text() + "x,one,d,alfred,t,s\n"),
        lambda table: table.write_text(table.read_text() + '"never closed'),
    ],
)
def test_an_unreadable_table_costs_only_the_comparison(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    write_set(tmp_path, LAMP, PLAIN, TWO, **FULL)
    spoil(tmp_path / "metadata.csv")
    release = open_release(tmp_path)
    assert len(release.sets) == 1
    assert release.rows == {}
    assert any("metadata.csv" in line and "nothing was compared" in line for line in problems(release))


def test_videos_are_below_the_folder_with_their_name(tmp_path: Path) -> None:
    write_set(tmp_path / "notes", LAMP, PLAIN, TWO, **FULL)
    (tmp_path / "media").mkdir()
    release = open_release(tmp_path / "notes", tmp_path / "media")
    assert release.video_path("alfred/x.mp4") == (tmp_path / "media/alfred/x.mp4").resolve()
    with pytest.raises(DataError):
        release.video_path("../notes/metadata.csv")


def test_a_link_out_of_the_release_is_not_read(tmp_path: Path) -> None:
    write_set(tmp_path / "data", LAMP, PLAIN, TWO, **FULL)
    outside = write_set(tmp_path / "elsewhere", "alfred/foundation/toggle/tap", PLAIN, TWO, **FULL)
    folder = tmp_path / "data/tasks/alfred/foundation/toggle"
    folder.mkdir()
    (folder / "tap.yaml").symlink_to(outside)
    release = open_release(tmp_path)
    assert list(release.sets) == [LAMP]
    assert any("leads outside the folder" in line for line in problems(release))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300) | st.text("[]{}&*:-!|>\n ab\"'", max_size=200).map(str.encode))
def test_no_bytes_of_a_description_do_worse_than_a_data_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    with suppress(DataError):
        assert read_description(path).label_prompts is not None
