"""Claims against the evidence of whole scene graphs: references are found true, planted falsehoods are found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.evidence import EvidenceBase, graph_evidence
from barista_bench.benchmarks.egocot.evidence_check import check_rationale
from barista_bench.benchmarks.egocot.question_evidence import question_evidence
from barista_bench.benchmarks.egocot.release import open_release
from barista_bench.core.example import Example
from barista_bench.errors import DataError
from barista_bench.generate.egocot.family import EgocotFamily
from barista_bench.generate.egocot.rationales import fact_sentence, place_sentence
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.domain import load_domain
from barista_bench.scene_graph.graph_words import third_person
from tests.egocot.planting import MISSED, graph_bases, item_bases, rates, reworded_rates, reworded_truths
from tests.releases import document, write_release


def test_rationales_built_from_the_evidence_of_all_mini_items_are_found_true(dev: list[Example]) -> None:
    task = Cot()
    for example in dev:
        evidence = task.evidence_base(example)
        checked = check_rationale("\n".join(map(str, example.target["reasoning"])), evidence)
        assert (checked.precision, checked.recall) == (1.0, 1.0), example.inputs["question"]


def test_every_relation_of_a_scene_graph_is_found_true_of_it(small_kitchen: Path) -> None:
    for video in SceneGraph(small_kitchen):
        evidence = graph_evidence(video)
        said = [fact_sentence(fact, span) for fact in evidence.facts for span in fact.spans]
        checked = check_rationale("\n".join(said[:80]), evidence)
        assert checked.precision == 1.0, [f for f in checked.findings if f.verdict != "supported"]
        places = check_rationale("\n".join(map(place_sentence, evidence.places[:100:7])), evidence)
        assert places.count("contradicted") == 0


@pytest.mark.full
def test_a_planted_falsehood_of_any_kind_is_found(mini_root: Path, small_kitchen: Path) -> None:
    """But for the sorts that `planting.MISSED` names."""
    for where, bases in (("items", item_bases(mini_root)), ("graphs", graph_bases(small_kitchen))):
        fractions = rates(bases)
        of_graph = {"state", "action", "order", "cause"} if where == "items" else set()
        assert {kind for kind, _ in fractions} == {"time", "object", "hand", "relation", "region"} | of_graph
        for sort, (hits, there) in fractions.items():
            assert hits == there or sort in MISSED[where], (where, sort, hits, there)


@pytest.mark.full
def test_falsehoods_in_other_words_are_found_and_truths_are_not_called_false(
    mini_root: Path, small_kitchen: Path
) -> None:
    for bases in (item_bases(mini_root), graph_bases(small_kitchen)):
        for kind, (hits, there) in reworded_rates(bases).items():
            assert hits >= 0.9 * there, (kind, hits, there)
        references = reworded_truths(bases)
        assert references["contradicted"] == 0
        assert references["supported"] >= 0.9 * references.total()


def _references(video: VideoGraph) -> Iterator[str]:
    """True statements about the hands and the things of a video, straight from its annotations, in many forms."""
    fps, end = video.video.fps or 30.0, video.frame_count
    for row in video.relations():
        said = f"the {row.source.category} {row.value} the {row.target.category}"
        start, stop = row.start / fps, (min(row.end, end) - 1) / fps
        yield said.capitalize() + "."
        yield f"Later {said}."
        yield f"{said} for {stop - start:.1f} seconds.".capitalize()
        yield f"From {start:.2f} s to {stop:.2f} s {said}."
        yield from (f"At {time:.2f} s {said}." for time in (start, (start + stop) / 2, stop))
        if row.value == "holds" and row.end < end:
            yield f"At {row.end / fps:.2f} s the {row.source.category} releases the {row.target.category}."
            yield f"Later the {row.source.category} lets go of the {row.target.category}."
            yield f"The {row.source.category} puts down the {row.target.category}."


def _states_and_actions(video: VideoGraph) -> Iterator[str]:
    """True statements of what evidence.graph is about, straight from the annotations, at their middle."""
    fps, words = video.video.fps or 30.0, EgocotFamily(load_domain()).words
    for attribute in video.attributes():
        time = (attribute.start + min(attribute.end, video.frame_count) - 1) / 2 / fps
        category = attribute.object.category
        yield f"At {time:.2f} s the {category} is {words.state(attribute.value, category)}."
    for row in (*video.activities(), *video.steps()):
        yield f"At {(row.start + row.end - 1) / 2 / fps:.2f} s the person {third_person(words.phrase(row.name))}."


@pytest.mark.full
def test_true_facts_of_the_scene_graph_are_never_contradicted(dev: list[Example], small_kitchen: Path) -> None:
    graph = SceneGraph(small_kitchen)
    asked: dict[str, list[EvidenceBase]] = {video.video_id: [graph_evidence(video)] for video in graph}
    for example in dev:
        (name,) = [name for name in asked if name in example.video_id]
        asked[name].append(Cot.evidence_base(example))
    assert sum(map(len, asked.values())) == len(asked) + len(dev) > len(asked)
    for name, bases in asked.items():
        for text in dict.fromkeys([*_references(graph[name]), *_states_and_actions(graph[name])]):
            for evidence in bases:
                wrong = [f for f in check_rationale(text, evidence).findings if f.verdict == "contradicted"]
                assert not wrong, (text, wrong)


def test_real_scene_graphs_can_be_evidence_too(real_release: Path) -> None:
    bases = graph_bases(real_release)
    assert reworded_truths(bases)["contradicted"] == 0
    assert sum(there for _, there in rates(bases).values()) > 0


def test_reference_reasoning_of_the_page_is_never_contradicted(page_folder: Path) -> None:
    for item in open_release(page_folder).items.values():
        about = item.evidence, item.question, item.choices, str(item.answer)
        evidence = question_evidence(*about, size=(910, 512), duration=60.0)
        checked = check_rationale("\n".join(item.reasoning), evidence, answer=item.answer)
        assert not checked.is_contradicted, [f for f in checked.findings if f.verdict == "contradicted"]
        assert checked.count("supported") > 0


def test_the_page_sample_is_refuted_with_the_other_hand_place_or_time(page_folder: Path) -> None:
    item = open_release(page_folder).items["ego_000000"]
    evidence = question_evidence(item.evidence, item.question, item.choices, "B", size=(910, 512), duration=60.0)
    for text, kind in (
        ("At 00:01.00 the right hand is holding the pot.", "hand"),
        ("At 00:01.00 the left hand is in the upper right of the frame.", "region"),
        ("At 01:20.00 the left hand is near the bottle.", "time"),
        ("At 00:01.00 the bottle is far from the left hand.", "relation"),
        ("The target object is the chin.", "object"),
    ):
        findings = check_rationale(text, evidence, answer="B").findings
        assert [f.claim.kind for f in findings if f.verdict == "contradicted"] == [kind], text


def test_a_graph_without_a_frame_rate_is_refused(tmp_path: Path) -> None:
    content = document("capsule")
    del content["video_metadata"][0]["fps"]
    write_release(tmp_path, "v1", content, video=False)
    with pytest.raises(DataError, match="v1: has no fps"):
        graph_evidence(SceneGraph(tmp_path)["v1"])
