"""Questions and answers that templates write of changes."""

import msgspec
from hypothesis import given, strategies as st

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Change
from barista_bench.benchmarks.barista.qa_templates import FEWEST_WORDS, changes_to_tell, describe_change, write_pair
from barista_bench.benchmarks.lexical import is_said
from barista_bench.scene_graph.domain import domain_vocabulary
from tests.judging.changes import change

names = st.sampled_from(sorted(domain_vocabulary()))
changes = st.builds(
    Change,
    **{
        "category": st.just(""),
        "number": st.just(0),
        "kind": st.just(""),
        "subject": names,
        "value": st.sampled_from(["on", "contains", "attached to"]),
        "objects": st.lists(names, min_size=1, max_size=2),
        "object_ids": st.just([]),
        "rows": st.just([]),
        "start": st.just(0),
        "end": st.just(120),
    },
)
KINDS = {
    "state_change": ["opened", "closed", "started rinsing", "stopped extracting"],
    "action_transition": ["contact"],
    "relation_change": ["new", "lost"],
    "activity_progression": ["started", "ended", "continuing"],
}


@given(st.sampled_from(CATEGORIES), st.lists(changes, min_size=1, max_size=6), st.data())
def test_template_answers_are_long_enough_and_cover_every_change(
    category: str, drawn: list[Change], data: st.DataObject
) -> None:
    for item in drawn:
        item.category = category
        item.kind = data.draw(st.sampled_from(KINDS[category]))
    if category == "action_transition":
        drawn = [msgspec.structs.replace(c, subject="left hand") for c in (*drawn, drawn[0])]
    if category == "activity_progression":
        drawn = [msgspec.structs.replace(c, subject="Stir") for c in drawn]
    pair = write_pair(category, drawn)
    assert len(pair["answer"].split()) >= FEWEST_WORDS
    assert pair["category"] == category
    for item in changes_to_tell(drawn):
        assert is_said(describe_change(item), pair["answer"])


def test_changes_that_read_the_same_are_told_once() -> None:
    put = change("relation_change", "new", "lid", "jar", value="on")
    moved = [
        msgspec.structs.replace(put, number=1),
        change("relation_change", "lost", "lid", "tray", value="on", number=1),
    ]
    answer = write_pair("relation_change", [put, *moved])["answer"]
    assert answer.endswith("the lid is now on the jar and the lid is no longer on the tray.")


def test_activities_that_begin_or_end_are_not_told_to_go_on() -> None:
    steps = [
        ("started", "Stir"),
        ("continuing", "Brew"),
        ("continuing", "Hum"),
        ("ended", "Hum"),
        ("continuing", "Brew"),
    ]
    steps_to_tell = changes_to_tell([change("activity_progression", *step) for step in steps])
    assert [(c.kind, c.subject) for c in steps_to_tell] == [
        ("started", "Stir"),
        ("ended", "Hum"),
        ("continuing", "Brew"),
    ]
