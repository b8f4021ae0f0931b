"""Which answered object is which true one."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from barista_bench.benchmarks.name_matching import plain_name
from barista_bench.benchmarks.sentence_similarity import sentence_encoder
from barista_bench.benchmarks.tog_bench.scores import Recogniser, assign, synonym_groups
from barista_bench.errors import ConfigError

Floats = NDArray[np.float64]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Trash-Can", "trash can"),
        ("the  desk_lamp.", "desk lamp"),
        ("chair 2", "chair"),
        ("chair #12", "chair"),
        ("A cup", "cup"),
        ("an", "an"),
        ("7", "7"),
        ("'whiteboard'", "whiteboard"),
        ("door number sign", "door number sign"),
    ],
)
def test_names_are_compared_without_case_article_punctuation_and_number(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_exact_matching_takes_only_the_category() -> None:
    true = [("trash can", "bin"), ("sofa",)]
    similarities = Recogniser("exact").similarities(["Trash can", "bin", "couch"], true)
    assert similarities.tolist() == [[1, 0], [0, 0], [0, 0]]


def test_synonyms_come_from_the_annotation_and_the_packaged_list() -> None:
    true = [("trash can", "dust basket"), ("sofa",)]
    similarities = Recogniser("synonyms").similarities(["dust-basket", "couch", "garbage bin", "lamp"], true)
    assert similarities.tolist() == [[1, 0], [0, 1], [1, 0], [0, 0]]


def test_no_name_is_in_two_groups_of_synonyms() -> None:
    names = [name for group in synonym_groups() for name in group]
    assert sorted(names) == sorted(set(names))
    assert all(len(group) > 1 for group in synonym_groups())


def test_similarities_are_the_best_cosine_over_category_and_synonyms(encoder: str) -> None:
    true = [("coffee cup", "mug", "glass"), ("sink",)]
    names = ["Cup", "mug 2", "the sink"]
    similarities = Recogniser("embeddings", encoder=encoder).similarities(names, true)
    plain = sentence_encoder(encoder).similarity(["cup", "mug", "sink"], ["coffee cup", "mug", "glass", "sink"])
    assert similarities == pytest.approx(np.stack([plain[:, :3].max(axis=1), plain[:, 3]], axis=1), abs=2e-6)
    assert (similarities[1, 0], similarities[2, 1]) == (1, 1)


def test_preparing_many_names_together_changes_no_similarity(encoder: str) -> None:
    true = [("coffee cup",), ("sink",)]
    names = [f"thing {letter}" for letter in "abcdefgh"]
    alone = Recogniser("embeddings", encoder=encoder).similarities(names, true)
    sentence_encoder.cache_clear()
    fresh = Recogniser("embeddings", encoder=encoder)
    fresh.prepare([(names, true), (["other"], true)])
    assert np.array_equal(fresh.similarities(names, true), alone)


def test_a_missing_encoder_is_named_with_the_matchers_that_need_none(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    with pytest.raises(ConfigError, match=r"option encoder: .*absent.*matcher=exact or matcher=synonyms"):
        Recogniser("embeddings", encoder=absent).similarities(["cup"], [("cup",)])
    assert Recogniser("exact", encoder=absent).similarities(["cup"], [("cup",)]).tolist() == [[1]]


def tables() -> st.SearchStrategy[tuple[Floats, Floats]]:
    sizes = st.tuples(st.integers(1, 4), st.integers(1, 4))

    def of(size: tuple[int, int]) -> st.SearchStrategy[tuple[Floats, Floats]]:
        # Few values, so that there are many ties.
        cells = st.lists(st.sampled_from([0.0, 0.5, 0.6, 1.0]), min_size=size[0] * size[1], max_size=size[0] * size[1])
        return st.tuples(cells, cells).map(lambda two: tuple(np.array(c).reshape(size) for c in two))  # type: ignore[arg-type, return-value]

    return sizes.flatmap(of)


@given(tables(), st.sampled_from([0.3, 0.6, 0.9, 1.0]))
def test_the_assignment_is_the_best_of_all_by_similarity_and_then_by_overlap(
    case: tuple[Floats, Floats], threshold: float
) -> None:
    similarity, overlap = case
    matches = assign(similarity, threshold, lambda i, j: float(overlap[i, j]))
    taken = [match for match in matches if match is not None]
    assert len(taken) == len(set(taken))
    assert all(similarity[i, j] >= threshold for i, j in enumerate(matches) if j is not None)

    def worth(choice: tuple[int | None, ...] | list[int | None]) -> tuple[float, float]:
        pairs = [(i, j) for i, j in enumerate(choice) if j is not None and similarity[i, j] >= threshold]
        # Overlaps decide between pairs that compete; a pair without competitors needs none.
        return round(sum(similarity[p] for p in pairs), 6), round(sum(overlap[p] for p in pairs), 6)

    rows, columns = similarity.shape
    options: list[int | None] = [*range(columns), *([None] * rows)]
    best = max(worth(choice) for choice in set(itertools.permutations(options, rows)))
    assert worth(matches) == best
