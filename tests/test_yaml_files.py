"""YAML that people write: plain values are read as PyYAML reads them, and what could do harm is named by its line."""

import itertools
import os
import re
import string
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.files.reading import MAX_YAML, load_yaml

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.dates()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


class Plain(yaml.SafeDumper):
    """Writes equal values out instead of referring to the first of them."""

    def ignore_aliases(self, data: object) -> bool:
        return True


@given(VALUES)
def test_plain_values_are_read_as_they_were_written(value):
    text = yaml.dump(value, Dumper=Plain)
    assert load_yaml(text, "x.yaml") == load_yaml(text.encode(), "x.yaml") == value


@given(st.text(max_size=60) | st.binary(max_size=60), st.booleans())
def test_any_text_is_read_or_refused_by_name(data, text_only):
    try:
        load_yaml(data, "x.yaml", text_only=text_only)
    except ConfigError as error:
        assert re.fullmatch(r"x\.yaml: is not YAML that is read here \(.+\)\. Fix: .*", str(error))  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: [2", "line [23]: "),
        ("a: &one x\nb: *one", r"line 2: aliases \(\*name\) are not read"),
        ("a: 1\nb: 2\na: 3", "line 3: 'a' appears here twice"),
        ("a:\n  b: {c: 1, c: 2}", "line 2: 'c' appears here twice"),
        ("x" * 500 + ": 1\n" + "x" * 500 + ": 2", r"line 2: 'x{100}' appears here twice"),
        ("a: " + "9" * 401, "line 1: a number of 401 characters"),
        ("a: 0x" + "f" * 5000, "a number of 5002 characters"),
        ("a: " + "1:" * 300 + "1.0", "a number of 603 characters"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: 2025-13-45", "month must be in 1..12"),
        ("? [a]\n: 1", "line 1: found unhashable key"),
        ("[" * 100_000, "nested too deeply"),
        ("a: 1\n---\nb: 2", "line 2: but found another document"),
        (b"a: \xff", "decode|invalid start byte|invalid leading"),
        ("a: \x00", "(special|control) characters are not allowed"),
        ("#" * (MAX_YAML + 1), f"more than {MAX_YAML}"),
    ],
)
def test_a_refused_value_is_named_with_its_line(text, said):
    with pytest.raises(ConfigError, match=rf"^some/x\.yaml: .*{said}.*Fix: "):
        load_yaml(text, "some/x.yaml")


@given(VALUES)
def test_text_only_leaves_every_scalar_as_it_was_written(value):
    text = yaml.dump(value, Dumper=Plain)
    assert load_yaml(text, "x.yaml", text_only=True) == yaml.load(text, Loader=yaml.BaseLoader)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: ]", "line 2: "),
        ("a: &one x\nb: *one", r"line 2: aliases \(\*name\) are not read"),
        ("a:\n  b: {1: 1, 1: 2}", "line 2: '1' appears here twice"),
        ("[" * 100_000, "nested too deeply|max depth"),
        ("{a: " * 900 + "1" + "}" * 900, "nested too deeply"),
        ("- " * 50_000, "nested too deeply|max depth"),
        (b"a: \xff", "UTF-8|invalid start byte"),
    ],
)
def test_text_only_refuses_what_could_do_harm_as_well(text, said):
    with pytest.raises(ConfigError, match=rf"^x\.yaml: .*({said}).*Fix: "):
        load_yaml(text, "x.yaml", text_only=True)


def test_a_few_lines_of_aliases_are_refused_before_they_grow():
    names = string.ascii_lowercase
    lines = [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in itertools.pairwise(names)]
    with pytest.raises(ConfigError, match="line 2: aliases"):
        load_yaml("\n".join(["a: &a x", *lines]), "x.yaml")


def test_no_error_shows_the_text_around_a_mistake_and_the_caller_chooses_the_exception():
    assert load_yaml(b"", "x.yaml") is None
    with pytest.raises(DataError, match="Fix: ask for another") as caught:
        load_yaml("api_key: sk-planted-0123456789\nb: [", "x.yaml", error=DataError, remedy="ask for another")
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("name", ["v", "P01-02.final", "Kaffee süß", "動画", "a b", "..a", "x" * 255])
def test_ordinary_names_are_video_ids(name):
    assert valid_video_id(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/a", "a\\b", "..\\a", "C:", "C:a", "a\0", "a\nb", "a\x7f", "\udcff", "x" * 256,
     "ü" * 128, "a\u2028b"],
)  # fmt: skip
def test_names_that_could_lead_elsewhere_or_break_a_file_system_are_no_video_ids(name):
    assert not valid_video_id(name)


def test_a_path_below_the_root_is_joined_and_links_inside_of_it_and_to_it_are_followed(tmp_path, monkeypatch):
    (tmp_path / "v").mkdir()
    (tmp_path / "alias").symlink_to("v")
    (tmp_path / "root").symlink_to(".")
    root = tmp_path.resolve()
    assert confine(tmp_path, "v", "video.mp4") == confine(tmp_path, "v/video.mp4") == root / "v" / "video.mp4"
    assert (confine(tmp_path), confine(tmp_path / "root", "v")) == (root, root / "v")
    assert confine(tmp_path, "alias", "video.mp4").parent.name == "alias"
    monkeypatch.chdir(tmp_path)
    assert confine(Path("release"), "v") == root / "release" / "v"


@pytest.mark.parametrize(
    "part", ["..", "v/../../x", "/etc/passwd", "", "v//x", ".", "v\\..\\x", "C:/x", "a\0b", "\udcff"]
)
def test_paths_that_climb_or_are_absolute_are_refused_by_name(tmp_path, part):
    with pytest.raises(DataError, match="is refused because of") as caught:
        confine(tmp_path, part, "video.mp4")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("target", ["folder", "file", "relative", "sibling"])
def test_a_link_out_of_the_root_is_refused(tmp_path, target):
    root, outside = tmp_path / "root", tmp_path / "root2"  # whose name starts like the root's
    (root / "v").mkdir(parents=True)
    outside.mkdir()
    link = root / "w" if target == "folder" else root / "v" / "w"
    link.symlink_to({"file": outside / "secret", "relative": "../../root2"}.get(target, outside))
    with pytest.raises(DataError, match=r"leads outside the folder.*hard link"):
        confine(root, "w/video.mp4" if target == "folder" else "v/w")


def test_a_loop_of_links_is_a_data_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DataError, match="loop"):
        confine(tmp_path, "a", "video.mp4")


def test_the_links_of_a_hub_snapshot_are_followed_into_its_own_blobs_only(tmp_path):
    repo = tmp_path / "hub" / "datasets--org--name"
    snapshot = repo / "snapshots" / ("a" * 40)
    (snapshot / "v").mkdir(parents=True)
    (repo / "blobs").mkdir()
    (repo / "blobs" / "etag").write_text("{}")
    (repo / "elsewhere").write_text("{}")
    (snapshot / "v" / "good").symlink_to("../../../blobs/etag")
    (snapshot / "v" / "bad").symlink_to("../../../elsewhere")
    assert confine(snapshot, "v", "good").read_text() == "{}"
    with pytest.raises(DataError, match="leads outside"):
        confine(snapshot, "v", "bad")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(alphabet="a./\\:C\0\n", max_size=8), min_size=1, max_size=3))
def test_every_accepted_path_is_below_the_root(tmp_path, parts):
    try:
        path = confine(tmp_path, *parts)
    except DataError:
        return
    assert os.path.normpath(path).startswith(str(tmp_path.resolve()) + os.sep)
