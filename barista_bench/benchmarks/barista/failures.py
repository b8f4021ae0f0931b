"""What is wrong with boxes, relations and words, by kind: the rules that the tasks' `failures` share.

Each starts from the matching of the task's own score, and only names what that leaves over. Leftovers of truth and
answer are paired by what they have in common, the closest first; what finds no partner is missed or hallucinated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from barista_bench.core.task import AnswerFailure, FailureKind
from barista_bench.metrics.interaction_f1.scoring import box_iou
from barista_bench.metrics.tuple_f1.scoring import Relation

LOOSE = 0.1
"""A box that overlaps a true one at least as much (IoU), and yet does not match it, is loose and not elsewhere."""
MATCHED = 0.5
"""Above it two boxes are of the same thing, as in the scores."""
SMALL, LARGE = 32**2, 96**2
"""COCO's bounds of small, medium and large objects, in square pixels."""

NEAR_MISSES: tuple[FailureKind, ...] = ("wrong_direction", "wrong_relation", "wrong_hand", "wrong_object")
"""What a missed and a wrong relation may be of each other, the closest first."""

Box = Sequence[float]


def box_size(box: Box) -> str:
    """COCO's word for the area of [x0, y0, x1, y1] in pixels.

    >>> box_size([0, 0, 31, 31]), box_size([0, 0, 32, 32]), box_size([0, 0, 100, 100])
    ('small', 'medium', 'large')
    """
    area = max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
    return "small" if area < SMALL else "medium" if area < LARGE else "large"


def box_failures(
    truth: Sequence[Box], answered: Sequence[Box], pairs: Iterable[tuple[int, int]], objects: Sequence[str]
) -> list[AnswerFailure]:
    """What is wrong with boxes, given the pairs (truth, answer) that count as right.

    Args:
        truth: in pixels.
        answered: in pixels.
        pairs: indices.
        objects: id of the object of each true box; empty, or fewer, where the data do not say.
    """

    def named(index: int) -> tuple[str, ...]:
        return tuple(name for name in objects[index : index + 1] if name)

    matched = list(pairs)
    missed = [i for i in range(len(truth)) if i not in {i for i, _ in matched}]
    wrong = [j for j in range(len(answered)) if j not in {j for _, j in matched}]
    failures = [AnswerFailure("loose_box", named(i)) for i, _ in _paired(missed, wrong, truth, answered)]
    failures += [AnswerFailure("missed", named(i)) for i in missed]
    for j in wrong:
        again = [i for i, _ in matched if box_iou(truth[i], answered[j]) > MATCHED]
        failures.append(AnswerFailure("duplicate", named(again[0])) if again else AnswerFailure("hallucinated"))
    return failures


def _paired(
    missed: list[int], wrong: list[int], truth: Sequence[Box], answered: Sequence[Box]
) -> list[tuple[int, int]]:
    """Leftovers that overlap by `LOOSE` or more, the most first; taken out of both lists."""
    overlaps = sorted((-box_iou(truth[i], answered[j]), i, j) for i in missed for j in wrong)
    pairs = []
    for overlap, i, j in overlaps:
        if -overlap >= LOOSE and i in missed and j in wrong:
            pairs.append((i, j))
            missed.remove(i)
            wrong.remove(j)
    return pairs


def relation_failures(
    truth: Counter[Relation], answered: Counter[Relation], hands: set[int]
) -> list[tuple[FailureKind, tuple[int, ...]]]:
    """What is wrong with relations, each with the marks that it is about.

    Args:
        truth: the true relations.
        answered: the answered ones.
        hands: marks of hands, which are mistaken for each other.
    """
    missed, wrong = list((truth - answered).elements()), list((answered - truth).elements())
    failures: list[tuple[FailureKind, tuple[int, ...]]] = []
    for kind in NEAR_MISSES:
        for true in sorted(missed):
            answer = next((item for item in sorted(wrong) if _is_near_miss(kind, true, item, hands)), None)
            if answer is not None:
                missed.remove(true)
                wrong.remove(answer)
                failures.append((kind, tuple(dict.fromkeys((*true[:2], *answer[:2])))))
    failures += [("missed", item[:2]) for item in sorted(missed)]
    failures += [("duplicate" if item in truth else "hallucinated", item[:2]) for item in sorted(wrong)]
    return failures


def _is_near_miss(kind: FailureKind, true: Relation, answer: Relation, hands: set[int]) -> bool:
    same_label = true[2:] == answer[2:]
    match kind:
        case "wrong_direction":
            return same_label and true[:2] == answer[:2][::-1]
        case "wrong_relation":
            return true[:2] == answer[:2]
        case "wrong_hand":
            return {true.source_id, answer.source_id} <= hands and true[1:] == answer[1:]
        case _:
            return same_label and (true.source_id == answer.source_id) != (true.target_id == answer.target_id)
