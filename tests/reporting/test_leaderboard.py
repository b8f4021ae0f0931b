"""The order of models, what is said of their gaps, and which breakdowns are shown: all by hand."""

from dataclasses import replace

from barista_bench.core.example import Status
from barista_bench.reporting.analyses import Analyses, analyse
from barista_bench.reporting.breakdowns import KeyGroups, breakdown_table, key_groups, separation
from barista_bench.reporting.leaderboard import TaskStanding, leaderboard
from barista_bench.reporting.view import Report, build_report
from barista_bench.runs.score.results import Breakdown, MetricValue, PartInfo
from barista_bench.runs.score.scoring import ScoredRun
from tests.reporting.made_runs import Fruit, MadeExamples, made_run

EXAMPLES = MadeExamples(10)


def answering(name: str, answer: str, examples: MadeExamples = EXAMPLES, **settings: object) -> ScoredRun:
    return made_run(examples, name=name, answer=answer, statuses=[Status.OK], folder=name, **settings)  # type: ignore[arg-type]


class Seed(Fruit):
    name = "seed"


def report(*runs: ScoredRun, permutations: int = 50) -> Report:
    return build_report(runs, analyses=analyse(runs, permutations=permutations))


def test_models_stand_by_score_and_people_and_baselines_below_them_unranked() -> None:
    runs = [answering("chance", "plum"), answering("weak", "kiwi"), answering("oracle", "apple, pear")]
    runs += [answering("human:ben", "plum"), answering("human:anna", "apple, pear")]
    made = report(*runs, answering("strong", "apple, pear"), answering("middle", "apple"))
    (board,), (section,) = made.boards, made.sections
    order = ["strong", "middle", "weak", "human:anna", "human:ben", "oracle", "chance"]
    assert [row[0].text for row in board.table.rows] == order
    assert board.unranked == 4
    assert [row[0].text for row in section.metrics[0].rows] == order
    assert [row[0].text for row in section.metrics[1].rows] == ["strong", "middle"], "people are no model's next"
    assert section.answers[0].text == "strong"


def test_a_gap_is_told_with_the_next_model_and_how_sure_it_is() -> None:
    (board,) = report(answering("strong", "apple, pear"), answering("weak", "kiwi"), answering("as weak", "fig")).boards
    strong, weak, last = (row[1] for row in board.table.rows)
    assert strong.gap is not None
    assert (strong.gap.below, strong.gap.difference, strong.gap.better, strong.gap.worse) == ("weak", 1.0, 10, 0)
    assert strong.gap.p < 0.05
    assert weak.gap is not None
    assert (weak.gap.below, weak.gap.p) == ("as weak", 1.0)
    assert last.gap is None


def test_models_without_a_task_come_after_those_with_all_and_have_no_mean_rank() -> None:
    everywhere = [answering("whole", "apple"), answering("whole", "apple", task=Seed())]
    partial = answering("partial", "apple, pear")
    everywhere[1] = replace(everywhere[1], folder=everywhere[1].folder / "seed")
    (board,) = report(*everywhere, partial).boards
    assert [column.name for column in board.table.columns][:2] == ["model", "mean rank"]
    assert [[cell.text for cell in row[:2]] for row in board.table.rows] == [["whole", "1.50"], ["partial", "–"]]
    assert board.table.rows[1][1].notes == ("1 of 2 tasks",)


def ranged(name: str, answer: str, low: float, high: float, task: Fruit) -> ScoredRun:
    """A run with an interval of its primary figure."""
    run = answering(name, answer, task=task)
    metrics = {
        name: metric.model_copy(update={"low": low, "high": high}) for name, metric in run.results.metrics.items()
    }
    return replace(run, folder=run.folder / task.name, results=run.results.model_copy(update={"metrics": metrics}))


def test_models_stand_by_the_mean_of_ranks_that_overlapping_intervals_share_never_by_a_mean_of_metrics() -> None:
    runs = []
    for task in (Fruit(), Seed()):
        runs += [ranged("good", "apple, pear", 0.8, 1.0, task), ranged("close", "apple", 0.5, 0.9, task)]
        runs += [ranged("far", "kiwi", 0.0, 0.4, task), ranged("chance", "kiwi", 0.0, 0.1, task)]
    (board,) = report(*reversed(runs)).boards
    assert [[cell.text for cell in row[:2]] for row in board.table.rows] == [
        *(["good", "1.00"], ["close", "1.00"], ["far", "3.00"]),
        ["chance", "–"],
    ]
    assert board.table.rows[-1][1].notes == (), "a baseline lacks no task"


def test_coverage_is_told_only_where_it_is_incomplete() -> None:
    runs = {"whole": answering("whole", "apple"), "cut": answering("cut", "apple", left_out=4)}
    board = leaderboard("garden", "Garden", [TaskStanding("garden / fruit", runs)], Analyses())
    whole, cut = (row[1] for row in board.table.rows)
    assert (whole.notes, whole.warn) == ((), False)
    assert (cut.notes, cut.warn) == (("12 of 20 samples scored",), True)


def test_a_breakdown_is_shown_once_and_not_with_one_example_a_row() -> None:
    run = answering("one", "apple")
    all_groups = key_groups(["one"], [run], [analyse([run], compare=False).breakdowns[run.folder]])
    # `activities` cut the examples as `preparation` does.
    assert [groups.key for groups in all_groups] == ["preparation"]
    few = answering("one", "apple", MadeExamples(2))
    assert key_groups(["one"], [few], [analyse([few], compare=False).breakdowns[few.folder]]) == []


def of(examples: int, **means: float) -> dict[str, Breakdown]:
    """A group of examples, and the figure of each model on it."""
    metrics = {name: MetricValue(mean=mean, std=None, repetitions=[mean]) for name, mean in means.items()}
    return {name: Breakdown(examples=examples, metric=metric) for name, metric in metrics.items()}


def test_what_separates_models_is_weighed_by_examples_and_leaves_single_ones_out() -> None:
    values = {"x": of(3, a=0.5, b=0.5), "y": of(9, a=0.9, b=0.5), "z": of(1, a=1.0, b=0.0)}
    assert abs(separation(values, ["a", "b"]) - 9 * 0.4 / 12) < 1e-12
    assert abs(separation(values, ["a"]) - 0.4) < 1e-12


def test_metrics_of_a_breakdown_lead_to_their_samples() -> None:
    table = breakdown_table(KeyGroups("kind", {"a b": of(2, one=0.5)}, 0), ["one", "two"], "f1")
    assert table.rows[0][2].query == (("key", "kind"), ("value", "a b"), ("model", "one"))
    assert [cell.text for cell in table.rows[0]] == ["a b", "2", "0.500", "–"]


def test_a_part_of_a_set_counts_in_no_mean_rank() -> None:
    def of_seed(name: str, answer: str) -> ScoredRun:
        run = answering(name, answer, task=Seed())
        dataset = run.results.dataset.model_copy(update={"part": PartInfo(words="some", asked=10, of=20)})
        results = run.results.model_copy(update={"dataset": dataset})
        return replace(run, results=results, folder=run.folder / "seed")

    whole = [answering("strong", "apple, pear"), answering("weak", "apple")]
    (board,) = report(*whole, of_seed("strong", "kiwi")).boards
    assert "mean rank" not in [column.name for column in board.table.columns]
    assert [row[0].text for row in board.table.rows] == ["strong", "weak"]
