"""Several judges on several runs, people's ratings, and the commands that show them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.cli.judge_commands import judged_line
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.text_out import echo
from barista_bench.judging import session
from barista_bench.judging.cross import CrossJudge, compare_judges, cross_judge, model_labels
from barista_bench.judging.cross_text import as_markdown
from barista_bench.judging.human import Rating, human_agreement, read_ratings
from barista_bench.judging.judged_run import JudgedRun, judge_labels
from barista_bench.judging.scoring import all_judged
from barista_bench.judging.session import judge
from barista_bench.models import Failure
from barista_bench.runs.score.scoring import score
from tests.conftest import MadeOnce
from tests.judging.judges import ONE_CRITERION, VQA, ScriptedJudge, criterion, material, verdict
from tests.six_tasks import SPOKEN

STRICT = {"accuracy": -3, "completeness": -1}


@pytest.fixture(scope="module")
def judged_runs(six_runs: Path, made_once: MadeOnce) -> Path:
    """The runs of `SPOKEN`, each under two judges: the strict one takes three points from accuracy and one from
    completeness."""

    def grade(off: dict[str, int]) -> Callable:
        def give(request, draw):
            base = {"long": 8, "shor": 5}[material(request)["answer"][:4]]
            return verdict(base + off.get(criterion(request), 0))

        return give

    def make(out: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for folder in SPOKEN:
                shutil.copytree(six_runs / folder, out / folder)
                for name, off in (("gemini-judge", {}), ("gpt-judge", STRICT)):
                    scripted = ScriptedJudge(grade(off), name=name)
                    patch.setattr(session, "load_model", lambda *args, scripted=scripted, **kwargs: scripted)
                    judge(out / folder / VQA, name, verdicts_per_answer=2)

    return made_once("six_judged", make)


def judged_in(folders: Path, *names: str) -> list[JudgedRun]:
    return [judged for name in names for judged in all_judged(score(folders / name / VQA))]


@pytest.fixture(scope="module")
def two_judges(judged_runs: Path) -> list[JudgedRun]:
    """Two models and two judges."""
    return judged_in(judged_runs, "qwen-good", "gpt-bad")


@pytest.fixture(scope="module")
def two_namesakes(judged_runs: Path) -> list[JudgedRun]:
    """Two runs of one model in folders of one name, three points apart, each under two judges."""
    return judged_in(judged_runs, "ra", "rb")


@pytest.fixture(scope="module")
def comparison(two_judges: list[JudgedRun]) -> CrossJudge:
    return cross_judge(two_judges)


def test_scores_are_side_by_side_with_tau_shift_and_spread(comparison: CrossJudge) -> None:
    by_metric = {metric.metric: metric for metric in comparison.comparisons}
    accuracy = by_metric["temporal_vqa: accuracy"]
    assert accuracy.judges == ("gemini-judge", "gpt-judge")
    assert dict(zip(accuracy.models, accuracy.first, strict=True)) == pytest.approx({"qwen-good": 0.8, "gpt-bad": 0.5})
    assert dict(zip(accuracy.models, accuracy.second, strict=True)) == pytest.approx({"qwen-good": 0.5, "gpt-bad": 0.2})
    assert (accuracy.tau, accuracy.shift, accuracy.shift_sd) == pytest.approx((1.0, -0.3, 0.0))
    assert by_metric["temporal_vqa: mean"].shift == pytest.approx(-0.2)
    assert comparison.scores["temporal_vqa / relation_change: mean"]["gpt-judge"]["qwen-good"] == pytest.approx(0.6)
    assert comparison.coverage["gpt-judge"]["temporal_vqa: gpt-bad"] == 1.0


def test_agreement_is_counted_answer_by_answer(comparison: CrossJudge) -> None:
    by_criterion = {criterion.criterion: criterion for criterion in comparison.agreement}
    assert (by_criterion["temporal_vqa: accuracy"].exact, by_criterion["temporal_vqa: accuracy"].within_1) == (0.0, 0.0)
    assert by_criterion["temporal_vqa: completeness"].within_1 == 1.0
    assert by_criterion["temporal_vqa: accuracy"].tau == pytest.approx(1.0)
    # By hand: all differences are 3; the pairs are (8, 5) and (5, 2), half of the answers each.
    # kappa = 1 - 9 / (1.5^2 + 1.5^2 + 3^2)
    assert by_criterion["temporal_vqa: accuracy"].qwk == pytest.approx(1 - 9 / 13.5)


def test_the_probe_looks_at_models_of_a_judges_own_vendor(comparison: CrossJudge) -> None:
    probed = {(probe.metric, probe.judge, probe.model): probe for probe in comparison.own_vendor}
    probe = probed["temporal_vqa: accuracy", "gpt-judge", "gpt-bad"]
    assert (probe.rank, probe.other_rank, probe.vendor) == (2, 2, "openai")
    assert probe.gain == pytest.approx(-0.3)
    assert probe.preference == pytest.approx(0.0)
    assert not [key for key in probed if key[1] == "gemini-judge"]
    stored = msgspec.to_builtins(comparison)["own_vendor"]
    assert {row["vendor"] for row in stored} == {"openai"}, "judges.json keeps the names of its fields"


def test_judges_of_other_rubrics_are_not_compared(make_run: Callable, use: Callable, tmp_path: Path) -> None:
    run = make_run(VQA, repetitions=1)
    mine = tmp_path / "mine.yaml"
    mine.write_text(ONE_CRITERION)
    use(ScriptedJudge(lambda *_: verdict(5)))
    judge(run, "any", verdicts_per_answer=1)
    with pytest.raises(ConfigError, match="only 1 judge"):
        cross_judge(all_judged(score(run)))
    judge(run, "any", verdicts_per_answer=1, rubric=mine)
    with pytest.raises(ConfigError, match="other rubric"):
        cross_judge(all_judged(score(run)))


def test_two_settings_of_one_judge_are_two_judges(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda *_: verdict(5), name="same"))
    judge(run, "any", verdicts_per_answer=1)
    judge(run, "any", verdicts_per_answer=1, temperature=0)
    judges = list(cross_judge(all_judged(score(run))).scores["temporal_vqa: mean"])
    assert len(judges) == 2
    assert all(name.startswith("same (") for name in judges)


def test_two_local_judges_in_folders_of_one_name_have_different_names(make_run: Callable, use: Callable) -> None:
    runs = [make_run(task, repetitions=1) for task in (VQA, "referring")]
    for folder in ("old", "new"):
        use(ScriptedJudge(lambda *_: verdict(5), name=f"/home/{folder}/qwen"))
        for run in runs:
            judge(run, "any", verdicts_per_answer=1)
    vqa, referring = [all_judged(score(run)) for run in runs]
    assert sorted(judge_labels([*vqa, *referring])) == ["new/qwen", "new/qwen", "old/qwen", "old/qwen"]
    apart = [
        next(each for each in vqa if "old" in each.folder.name),
        next(e for e in referring if "new" in e.folder.name),
    ]
    assert judge_labels(apart) == ["old/qwen", "new/qwen"], "also if each judges another task"
    assert judge_labels(vqa[:1]) == ["qwen"]


def test_runs_of_one_model_in_folders_of_one_name_do_not_overwrite_each_other(two_namesakes: list[JudgedRun]) -> None:
    comparison = cross_judge(two_namesakes)
    assert comparison.scores["temporal_vqa: mean"] == {
        "gemini-judge": pytest.approx({"student (ra)": 0.8, "student (rb)": 0.5}),
        "gpt-judge": pytest.approx({"student (ra)": 0.6, "student (rb)": 0.3}),
    }
    samples = sum(len(judged.verdicts) for judged in two_namesakes) // 2
    assert {criterion.n for criterion in comparison.agreement} == {samples}


def test_the_order_of_the_runs_changes_nothing(two_namesakes: list[JudgedRun], two_judges: list[JudgedRun]) -> None:
    runs = [*two_namesakes, *two_judges]
    # As JSON, since equal dictionaries may still differ in their order.
    expected = msgspec.json.encode(cross_judge(runs))
    assert msgspec.json.encode(cross_judge(runs[::-1])) == expected
    assert msgspec.json.encode(cross_judge([*runs[3:], *runs[:3]])) == expected


def test_ratings_name_runs_as_the_tables_do(two_namesakes: list[JudgedRun]) -> None:
    example = next(iter(two_namesakes[0].verdicts))[0]
    rating = Rating(example, "accuracy", 5, model="student (rb)")
    for order in (two_namesakes, two_namesakes[::-1]):
        agreement = {row.judge: (row.rated, row.exact, row.shift) for row in human_agreement(order, [rating])}
        assert agreement == {"gemini-judge": (1, 1.0, 0.0), "gpt-judge": (1, 0.0, -3.0)}
    with pytest.raises(ConfigError, match="no rating belongs to"):
        human_agreement(two_namesakes, [Rating(example, "accuracy", 4, model="student")])


def test_a_run_that_is_given_twice_is_refused_by_its_folder(two_namesakes: list[JudgedRun], tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(two_namesakes[0].run.folder)
    for again in (two_namesakes[0].run.folder, link):
        twice = [*two_namesakes, *all_judged(score(again))]
        with pytest.raises(ConfigError, match=r"ra/temporal_vqa/judges.*Fix: name each run once"):
            cross_judge(twice)
        with pytest.raises(ConfigError, match="name each run once"):
            human_agreement(twice, [Rating("any", "accuracy", 5, model="student")])


def test_a_folders_name_tells_the_runs_apart_where_it_can_and_tells_no_maker(
    make_run: Callable, use: Callable, tmp_path: Path
) -> None:
    folders = [tmp_path / "like-gpt-4", tmp_path / "plain"]
    for folder in folders:
        shutil.move(make_run(VQA, repetitions=1), folder)
    for name in ("gpt-judge", "gemini-judge"):
        use(ScriptedJudge(lambda *_: verdict(5), name=name))
        for folder in folders:
            judge(folder, name, verdicts_per_answer=1)
    runs = [judged for folder in folders for judged in all_judged(score(folder))]
    assert set(model_labels([judged.run for judged in runs])) == {"student (like-gpt-4)", "student (plain)"}
    assert not cross_judge(runs).own_vendor
    probed = cross_judge(runs, {"student (plain)": "openai"}).own_vendor
    assert {probe.model for probe in probed} == {"student (plain)"}
    by_name = cross_judge(runs, {"student": "openai"}).own_vendor
    assert {probe.model for probe in by_name} == {"student (like-gpt-4)", "student (plain)"}


def test_two_models_with_a_judge_each_do_not_count_as_two_judges(two_judges: list[JudgedRun]) -> None:
    pairs = {("qwen-good", "gemini-judge"), ("gpt-bad", "gpt-judge")}
    apart = [each for each in two_judges if (each.results.model, each.results.judge.name) in pairs]
    assert len(apart) == 2
    for runs in (apart, []):
        with pytest.raises(ConfigError, match=f"only {len(runs) // 2} judge"):
            cross_judge(runs)


def test_names_from_files_command_no_terminal(
    two_judges: list[JudgedRun], comparison: CrossJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "m\x1b]0;x\x07\x9b2J\u202e\nerror: none"
    named = two_judges[0].results.model_copy(update={"model": hostile})
    evil = msgspec.structs.replace(
        comparison, scores={hostile: {hostile: {hostile: 0.5}}}, coverage={hostile: {"m": 1.0}}
    )
    echo(judged_line(named))
    (line,) = capsys.readouterr().out.splitlines()
    for text in (line, *as_markdown(evil).split("\n")):
        assert text.isprintable()
    assert "m\\x1b]0;x\\x07" in line
    # Also in messages about an unusable file.
    done = CliRunner().invoke(app, ["compare", "judges", str(tmp_path / "no\x1b[2Jrun\nerror: none")])
    assert done.exit_code == 1
    assert done.output.rstrip("\n").isprintable()


def test_a_judge_servers_message_cannot_control_the_terminal(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda *_: Failure("down\x1b[2J\nall is well"), name="evil\x1b[31m"))
    done = CliRunner().invoke(app, ["judge", str(run), "--judge", "served:any", "--no-progress"])
    assert done.exit_code == 1
    assert "down\\x1b[2J\\nall is well" in done.output
    assert "judged by evil\\x1b[31m" in done.output
    assert all(line.isprintable() for line in done.output.split("\n"))


def test_rankings_of_one_model_or_of_ties_have_no_tau() -> None:
    metric = compare_judges("m", {"a": {"x": 0.5}, "b": {"x": 0.4}}, "a", "b")
    tied = compare_judges("m", {"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.4, "y": 0.3}}, "a", "b")
    assert metric is not None
    assert tied is not None
    assert metric.tau is tied.tau is None
    assert compare_judges("m", {"a": {"x": 0.5}, "b": {"y": 0.4}}, "a", "b") is None


@pytest.mark.full
def test_agreement_with_people_equals_scikit_learns(two_judges: list[JudgedRun]) -> None:
    from sklearn.metrics import cohen_kappa_score

    ids = [example for example, _ in two_judges[0].verdicts]
    given = [(index * 3) % 11 for index in range(2 * len(ids))]
    ratings = [
        Rating(example, "accuracy", given[index], model=model)
        for index, (model, example) in enumerate((m, e) for m in ("qwen-good", "gpt-bad") for e in ids)
    ]
    by_judge = {agreement.judge: agreement for agreement in human_agreement(two_judges, ratings)}
    machine = [8] * len(ids) + [5] * len(ids)
    gemini = by_judge["gemini-judge"]
    assert gemini.n == gemini.rated == len(given)
    assert gemini.qwk == pytest.approx(cohen_kappa_score(machine, given, weights="quadratic", labels=range(11)))
    apart = np.subtract(machine, given)
    assert gemini.exact == pytest.approx((apart == 0).mean())
    assert gemini.within_1 == pytest.approx((abs(apart) <= 1).mean())
    assert gemini.shift == pytest.approx(apart.mean())


def test_ratings_are_read_from_csv_and_jsonl_and_a_line_separator_in_a_text_ends_no_record(tmp_path: Path) -> None:
    table, lines = tmp_path / "r.csv", tmp_path / "r.jsonl"
    table.write_text(
        "example_id,criterion,score,model,repetition\na,accuracy,7,m,\nb\u2028b,accuracy,0,,2\n", encoding="utf-8"
    )
    lines.write_text(
        '{"example_id": "a", "criterion": "accuracy", "score": 7, "model": "m"}\n\n'
        '{"example_id": "b\u2028b", "criterion": "accuracy", "score": 0, "repetition": 2}\r\n',
        encoding="utf-8",
    )
    wanted = [Rating("a", "accuracy", 7, "m"), Rating("b\u2028b", "accuracy", 0, repetition=2)]
    assert read_ratings(table) == read_ratings(lines) == wanted


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("r.csv", "example_id,criterion,score\na,accuracy,eleven\n", "line 2"),
        ("r.csv", "example_id,criterion,score\na,accuracy,11\n", "score is 11"),
        ("r.csv", "example_id,criterion,score\na,accuracy,1,2,3\n", "line 2"),
        ("r.csv", "example_id,criterion,score\na,accuracy,1\na,accuracy,2\n", "rated twice"),
        ("r.jsonl", '{"example_id": "a", "criterion": "accuracy", "score": 7.5}\n', "line 1"),
        ("r.jsonl", "\udcff", "cannot be read"),
    ],
)
def test_broken_ratings_are_refused_by_line(name: str, text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(DataError, match=why):
        read_ratings(path)


def test_ratings_of_unknown_answers_are_refused(two_judges: list[JudgedRun]) -> None:
    with pytest.raises(ConfigError, match="no rating belongs to"):
        human_agreement(two_judges, [Rating("elsewhere", "accuracy", 5, model="gpt-bad")])
    with pytest.raises(ConfigError, match="name no model"):
        human_agreement(two_judges, [Rating("elsewhere", "accuracy", 5)])


def test_names_from_outside_cannot_break_the_tables(comparison: CrossJudge) -> None:
    hostile = "a|b <img> [x](y)"
    evil = msgspec.structs.replace(comparison, scores={hostile: {hostile: {hostile: 0.5}}})
    text = as_markdown(evil)
    assert "<img>" not in text
    assert "a|b" not in text


def test_the_commands_judge_and_compare(make_run: Callable, tmp_path: Path) -> None:
    run = make_run(VQA, lambda example, seed: "Answer: the lid was opened")
    runner = CliRunner()
    for name in ("lexical", "oracle"):
        done = runner.invoke(app, ["judge", str(run), "--judge", name, "--no-progress"])
        assert done.exit_code == 0, done.output
        assert f"judged by {name}" in done.output
    assert not (run / "results.json").exists(), "a judge reads a run"
    example = next(iter(all_judged(score(run))[0].verdicts))[0]
    ratings = tmp_path / "people.csv"
    ratings.write_text(f"example_id,criterion,score\n{example},accuracy,3\n")
    out = tmp_path / "out"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    done = runner.invoke(app, ["compare", "judges", str(run), "--out", str(out), "--human", str(ratings)])
    assert done.exit_code == 0, done.output
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert "## Agreement with people" in (out / "judges.md").read_text()
    content = json.loads((out / "judges.json").read_text())
    assert set(content["scores"]["temporal_vqa: mean"]) == {"lexical", "oracle"}
    assert content["human"][0]["n"] == 1


def test_the_commands_explain_errors(tmp_path: Path) -> None:
    runner, more = CliRunner(), ["--source", str(tmp_path), "--model", "tiny", "--out", str(tmp_path)]
    for arguments, why in (
        (["judge", str(tmp_path), "--judge", "lexical"], "no run here"),
        (["judge", str(tmp_path), "--judge", "chance"], "cannot grade"),
        (["judge", str(tmp_path)], "judge is missing"),
        (["compare", "judges", str(tmp_path)], "no run here"),
        (["compare", "judges", str(tmp_path), "--vendor", "x"], "has no vendor"),
        (["generate", "questions", *more, "--sampling", "nothing"], "not a setting"),
    ):
        done = runner.invoke(app, arguments)
        assert done.exit_code == 1, arguments
        assert why in done.output, done.output
        assert "Fix" in done.output
