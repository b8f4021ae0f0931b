from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.data.origin import load_splits, split_videos
from barista_bench.errors import DataError


def test_the_published_sizes_come_out() -> None:
    """185 videos, 148 and 37, stratified (paper, section 3.3)."""
    kinds = ["fully automatic"] * 83 + ["capsule"] * 61 + ["portafilter"] * 41
    splits = split_videos({f"v{i}": kind for i, kind in enumerate(kinds)})
    assert Counter(splits.values()) == {"train": 148, "test": 37}
    fraction = Counter(kinds[int(video[1:])] for video, split in splits.items() if split == "test")
    assert all(abs(fraction[kind] - kinds.count(kind) * 0.2) < 1 for kind in fraction)


@given(st.dictionaries(st.text(min_size=1), st.sampled_from("abc"), min_size=1))
def test_the_split_does_not_depend_on_order_and_every_larger_type_is_tested(preparations: dict[str, str]) -> None:
    splits = split_videos(preparations)
    assert splits == split_videos(dict(reversed(preparations.items())))
    for kind, size in Counter(preparations.values()).items():
        tested = sum(splits[v] == "test" for v in preparations if preparations[v] == kind)
        assert tested >= 1 or size == 1
        assert tested < size or size == 1


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "no split file"),
        ('{"train": []}', "no split file"),
        ('{"train": ["a"], "test": ["a"]}', "in both"),
        ('{"train": ["a"], "test": ["b"]}', "'c' is in no split"),
    ],
)
def test_a_split_file_is_taken_as_it_is_and_a_bad_one_refused(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "splits.json"
    path.write_text(content)
    with pytest.raises(DataError, match=what):
        load_splits(path, ("a", "c"))
    path.write_text('{"train": ["a", "b"], "test": ["c"]}')
    assert load_splits(path, ("a", "c")) == {"a": "train", "c": "test"}


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from("abc"), min_size=1),
    st.lists(st.lists(st.integers(0, 9), min_size=1, unique=True), max_size=4),
)
def test_a_config_about_several_videos_has_one_to_test_on(preparations: dict[str, str], picks: list[list[int]]) -> None:
    videos = sorted(preparations)
    asked = [frozenset(videos[at % len(videos)] for at in pick) for pick in picks]
    splits = split_videos(preparations, asked)
    assert splits == split_videos(preparations, asked[::-1])
    for config in asked:
        assert len(config) == 1 or any(splits[video] == "test" for video in config)
