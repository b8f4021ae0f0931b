"""Commands for judges: judge, compare judges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barista_bench.cli.app import Data, Options, Root, app, exit_on_error, exit_on_failures, scored_runs
from barista_bench.cli.flags import ABOUT_IMAGES, flag_command, resolve_flags
from barista_bench.cli.output import echo, print_result, warn
from barista_bench.core.guarding import raise_faults
from barista_bench.errors import ConfigError
from barista_bench.files.text_out import decimal
from barista_bench.judging.config import JudgeConfig

if TYPE_CHECKING:
    from barista_bench.judging.results import JudgedResults


@flag_command(app, JudgeConfig, positional="run", hidden={"model", *ABOUT_IMAGES})
def judge(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Grade the free-text answers of a run with a judge. The model of the run is not called.

    Every verdict is logged at once under RUN/judges. Run the same command again to resume. A flag overrides the
    environment variable (BARISTA_BENCH_<NAME>), and this variable overrides the settings file (--config).
    """
    from barista_bench.judging.scoring import score_judged
    from barista_bench.judging.session import judge_config

    with exit_on_error():
        config = resolve_flags(JudgeConfig, flags)
        session = judge_config(config)
        judged = score_judged(session.run, session.folder)
    print_result(judged_line(judged.results))
    echo(f"{session.asked} verdicts given, {session.already_done} were given before; see {session.folder}")
    if config.judge == "lexical":
        warn("lexical counts shared words: a lower bound, not a score to publish")
    with exit_on_error():
        raise_faults(session.run.task.faults)
    exit_on_failures(session, "verdicts", " (a server that gives no log-probabilities wants --top-logprobs 0)")


@app.command("compare judges")
def judges(
    folders: Annotated[list[Path], typer.Argument(help="Run folders with verdicts of at least two judges.")],
    out: Annotated[Path, typer.Option(help="Folder for judges.json and judges.md.")] = Path("judges"),
    human: Annotated[
        Path | None,
        typer.Option(help="Ratings by people: CSV or JSONL of example_id, criterion, score, model, repetition."),
    ] = None,
    vendor: Annotated[
        list[str] | None, typer.Option(help="Vendor of a judge or model as NAME=VENDOR, if its name does not show it.")
    ] = None,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Compare judges by rankings, shifts, agreement, self-preference, and people's ratings if given."""
    import msgspec

    from barista_bench.files.owned_folders import JUDGES, check_target, replacing_folder
    from barista_bench.judging.cross import cross_judge
    from barista_bench.judging.cross_text import as_markdown
    from barista_bench.judging.human import human_agreement, read_ratings
    from barista_bench.judging.scoring import all_judged

    with exit_on_error():
        check_target(out, JUDGES)
        vendors = dict[str, str]()
        for pair in vendor or []:
            name, _, maker = pair.partition("=")
            if not (name and maker):
                raise ConfigError(f"--vendor: {pair!r} has no vendor. Fix: write NAME=VENDOR")
            vendors[name] = maker
        with scored_runs(folders, data, root, option) as runs:
            judged = [judged_run for run in runs for judged_run in all_judged(run)]
            analysis = cross_judge(judged, vendors)
            human_agreements = human_agreement(judged, read_ratings(human)) if human else []
            text = as_markdown(analysis, human_agreements)
            content = {**msgspec.to_builtins(analysis), "human": msgspec.to_builtins(human_agreements)}
            with replacing_folder(out, JUDGES) as folder:
                (folder / "judges.md").write_text(text, encoding="utf-8", errors="backslashreplace")
                (folder / "judges.json").write_bytes(
                    msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
                )
            print_result(*text.removesuffix("\n").split("\n"))
            echo(f"wrote {out / 'judges.md'} and {out / 'judges.json'}")


def judged_line(results: JudgedResults) -> str:
    """Return a line with the scores, their spread and the coverage."""
    coverage = results.coverage
    metrics = ", ".join(
        f"{name} {decimal(metric.mean)}" + (f" ± {decimal(metric.std)}" if metric.std is not None else "")
        for name, metric in results.metrics.items()
    )
    statuses = ", ".join(f"{name} {count}" for name, count in coverage.verdicts.items() if count)
    if (stopped := results.stopped) is not None:
        return (
            f"{results.dataset.task}, {results.model}: STOPPED EARLY, no score: {stopped.bounds}; "
            + stopped.sentence(results.model)
        )
    judge = f"{results.judge.name}, held to its form" if results.is_held else results.judge.name
    return (
        f"{results.dataset.task}, {results.model} judged by {judge}: {metrics or 'no usable verdict'} "
        f"over {results.repetitions} repetition(s), {coverage.judged}/{coverage.expected} answers judged ({statuses}), "
        f"rubric {results.rubric.wording}, wording {results.answers.wording}"
    )
