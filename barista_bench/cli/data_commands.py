"""Commands for tasks, releases and datasets: mini, import-graph, validate, build, show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from barista_bench.benchmarks import BENCHMARKS, get_benchmark, get_task
from barista_bench.cli.app import Json, Progress, app, exit_on_error, split_names
from barista_bench.cli.flags import flag_command, resolve_flags
from barista_bench.cli.output import echo, print_json, print_result, warn
from barista_bench.cli.tree import ParentCommand
from barista_bench.data.settings import BuildSettings
from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import STATISTICS, check_target, replacing_folder
from barista_bench.other_graphs import Tool
from barista_bench.scene_graph import Problem, SceneGraph, validate as check
from barista_bench.scene_graph.shown_format import schema_path
from barista_bench.scene_graph.validation import count_alike

_SHOWN_REASONS = 5
"""Maximum number of left-out examples that `build` names per config."""


@app.command(cls=ParentCommand, no_args_is_help=True)
def show() -> None:
    """Show the tasks, the content of a release, the examples on a frame, clues in a set, or this machine's setup."""


@app.command("show tasks")
def tasks(json: Json = False) -> None:
    """List every task with its question, answer format, primary metric and the size of its published set."""
    rows = [
        {
            "benchmark": task.benchmark,
            "task": task.name,
            "asked": task.row_note,
            "answer": task.answer_note,
            "primary": task.primary,
            "primary_note": task.primary_note,
            "examples": task.sampling.limit,
        }
        for name in BENCHMARKS
        for task in BENCHMARKS[name].tasks
    ]
    if json:
        print_json(rows)
        return
    for row in rows:
        size = "" if row["examples"] is None else f"; published with at most {row['examples']} examples"
        print_result(
            f"{row['benchmark']}/{row['task']}: {row['asked']}",
            f"  answered as {row['answer']}; headline metric {row['primary']}{size}",
        )


@app.command()
def mini(
    out: Annotated[Path, typer.Argument(help="Folder to write the kitchen to.")],
    videos: Annotated[int, typer.Option(help="Number of videos, spread over the three preparation types.")] = 9,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same annotations.")] = 0,
    width: Annotated[int, typer.Option(help="Frame width in pixels.")] = 640,
    height: Annotated[int, typer.Option(help="Frame height in pixels.")] = 360,
    fps: Annotated[
        int, typer.Option(help="Frames per second. Events do not depend on it; a lower rate draws fewer frames.")
    ] = 30,
    effects: Annotated[
        bool,
        typer.Option(
            "--effects",
            help="Add three videos for ViSTa: cups change places, a coffee machine is wiped, milk is heated.",
        ),
    ] = False,
    num_proc: Annotated[int, typer.Option(help="Processes.")] = 2,
    progress: Progress = True,
) -> None:
    """Render a small scripted coffee kitchen with a complete scene graph, in the release layout.

    `generate --source KITCHEN` makes small releases of the other benchmarks from this kitchen.
    """
    from barista_bench.mini import write_kitchen

    with exit_on_error():
        folders = write_kitchen(
            out,
            videos=videos,
            seed=seed,
            width=width,
            height=height,
            num_proc=num_proc,
            fps=fps,
            effects=effects,
            progress=progress,
        )
    echo(f"{len(folders)} videos in {out}")


@app.command()
def import_graph(
    source: Annotated[Path, typer.Argument(help="Folder of the dataset in its original layout.")],
    out: Annotated[Path, typer.Option(help="Folder for the graphs. Run the command again to resume.")],
    from_: Annotated[
        str, typer.Option("--from", help="Layout of the source: pvsg, visor, table (see --map), or a plug-in's reader.")
    ],
    map: Annotated[
        str | None,
        typer.Option(
            "--map", help=f"With --from table: {', '.join(get_args(Tool))}, or a file that describes your tables."
        ),
    ] = None,
    domain: Annotated[
        Path | None, typer.Option(help="Domain file to whose words predicates are mapped; coffee making by default.")
    ] = None,
    videos: Annotated[str, typer.Option(help="Video ids, separated by commas; all by default.")] = "",
    progress: Progress = True,
) -> None:
    """Make scene graphs from a public dataset or another tool's annotations. Report imported and lost records.

    Continue with `validate`, `build` and `generate`, as for any release. A fact that the dataset does not state is
    unknown, never "no".
    """
    from barista_bench.other_graphs.importing import import_graphs

    with exit_on_error():
        report = import_graphs(
            from_, source, out, domain=domain, videos=split_names(videos), map=map, progress=progress
        )
    for line in report.lines():
        print_result(line)
    echo(f"wrote {out}")
    if not report.is_whole:
        raise typer.Exit(1)


@app.command()
def validate(
    root: Annotated[Path, typer.Argument(help="Data root; for other benchmarks, the annotation folder.")],
    benchmark: Annotated[str, typer.Option(help="Benchmark of the release.")] = "barista",
    videos: Annotated[Path | None, typer.Option(help="Folder of another benchmark's videos, if not below it.")] = None,
    decode: Annotated[bool, typer.Option("--decode", help="Decode every frame, not only the last of a video.")] = False,
    num_proc: Annotated[int, typer.Option(help="Processes.")] = 1,
    strict: Annotated[bool, typer.Option(help="Exit with code 1 on warnings too.")] = False,
    show: Annotated[int, typer.Option(help="Maximum number of kinds of problems to print.")] = 100,
    progress: Progress = True,
) -> None:
    """Check every record, mask and video of a release. Exit code 1 if there are errors.

    For other benchmarks, check the annotations and count the examples whose videos are present.
    """
    if benchmark != "barista":
        _validate_release(benchmark, root, videos, strict, show, progress)
        return
    with exit_on_error():
        validation = check(root, decode=decode, num_proc=num_proc, progress=progress)
    for video in validation.videos:
        print_result(
            f"{video.video_id}: {video.frames} frames, {video.objects} objects, {video.instances} instances, "
            f"{video.attributes} attribute and {video.relations} relation ranges, {video.activities} activities, "
            f"{video.steps} steps"
        )
    print_result(f"{len(validation.videos)} usable videos")
    if not decode:
        echo("only the last frame of each video was decoded (--decode decodes all)")
    if validation.problems:
        echo(f"The format: docs/graph_format.md; its JSON Schema: {schema_path()}", err=True)
    _report_problems(validation.problems, strict, show)


def _validate_release(benchmark: str, root: Path, videos: Path | None, strict: bool, show: int, progress: bool) -> None:
    from barista_bench.data.origin import open_origin

    with exit_on_error():
        origin = open_origin(benchmark, root, videos=videos)
        tasks = [get_task(benchmark, name) for name in origin.benchmark.task_names]
        plans = origin.plans([(task, task.sampling) for task in tasks], num_proc=1, progress=progress)
    for name, plan in plans.by_task.items():
        print_result(f"{name}: {plan.candidates} examples, {len(plan.skipped)} skipped")
        for item in plan.skipped[:show]:
            warn(f"  skipped: {item.frame.video_id}: {item.text}")
    for name, reason in plans.empty.items():
        warn(f"{name}: {reason}")
    _report_problems(plans.problems, strict, show)


def _report_problems(problems: Sequence[Problem], strict: bool, show: int) -> None:
    """Print the problems. Exit with code 1 if there is an error, or with `strict` if there is any problem."""
    kinds = count_alike(problems)
    for problem, count in islice(kinds.items(), show):
        text = f"{problem} (and {count - 1} more like it)" if count > 1 else str(problem)
        echo(text, color="red" if problem.severity == "error" else "yellow", err=True)
    if len(kinds) > show:
        echo(f"... and {len(kinds) - show} more kinds (--show)", err=True)
    counts = Counter(problem.severity for problem in problems)
    print_result(f"{counts['error']} errors, {counts['warning']} warnings")
    if counts["error"] or (strict and counts["warning"]):
        raise typer.Exit(1)


@app.command("show stats")
def stats(
    root: Annotated[
        Path, typer.Argument(help="Data root: one folder per video; for other benchmarks, a built dataset.")
    ],
    benchmark: Annotated[str, typer.Option(help="Benchmark of the data.")] = "barista",
    out: Annotated[
        Path, typer.Option(help="Folder for statistics.md and the plots; for a data root, statistics.json too.")
    ] = Path("statistics"),
    plots: Annotated[bool, typer.Option(help="Draw the plots, as SVG and PDF; needs the extra viz.")] = True,
    domain_draft: Annotated[
        Path | None,
        typer.Option(help="Only write a draft of a domain file with the words of a data root, for you to complete."),
    ] = None,
    progress: Progress = True,
    json: Json = False,
) -> None:
    """Count the content of a release: layers, distributions, durations, preparation types.

    For other benchmarks, count the content of a dataset made by `build`. The tables follow the benchmark's paper.
    """
    from barista_bench.scene_graph.statistics import statistics
    from barista_bench.scene_graph.statistics_files import write_statistics

    if domain_draft is not None:
        _draft_domain(root, benchmark, domain_draft)
        return
    if benchmark != "barista":
        _set_statistics(root, benchmark, out, plots, json)
        return
    with exit_on_error():
        check_target(out, STATISTICS)
        graph = SceneGraph(root)
        counts = statistics(graph, progress=progress)
        files = write_statistics(counts, out, plots=plots)
    if json:
        print_json(asdict(counts))
    print_result(
        f"{counts.videos} videos, {counts.frames} frames, {counts.instances} instances, "
        f"{counts.relation_rows} relations, {counts.activity_segments} activity segments"
    )
    echo(f"wrote {', '.join(str(file) for file in files)}")
    _exit_on_lost_videos(graph.failed, graph.problems)


def _exit_on_lost_videos(video_ids: Collection[str], problems: Sequence[Problem]) -> None:
    """Print the videos that could not be used. If there are any, exit with code 1."""
    why = {problem.file: problem.what for problem in problems}
    for video_id in list(video_ids)[:_SHOWN_REASONS]:
        warn(f"lost: {video_id}: {why.get(video_id, 'none of its examples could be made')}")
    if video_ids:
        echo(f"{len(video_ids)} videos could not be used")
        raise typer.Exit(1)


def _draft_domain(root: Path, benchmark: str, out: Path) -> None:
    from barista_bench.files.writing import write_whole
    from barista_bench.scene_graph.domain_draft import draft_domain
    from barista_bench.scene_graph.graph_words import survey_words

    with exit_on_error():
        if benchmark != "barista":
            raise ConfigError("--domain-draft: works only for scene graphs. Fix: name a data root, without --benchmark")
        if out.exists():
            raise ConfigError(f"{out}: exists already. Fix: name a new file, or delete this one")
        graph = SceneGraph(root)
        text = draft_domain(survey_words(graph), graph.root.resolve().name)
        write_whole(out, text.encode())
    print_result(f"wrote {out}, from the words of {len(graph.video_ids)} videos")


def _set_statistics(data: Path, benchmark: str, out: Path, plots: bool, json: bool) -> None:
    from barista_bench.plots import write_figure
    from barista_bench.reporting.figures import drawn_tables
    from barista_bench.reporting.paper import set_statistics
    from barista_bench.tables import markdown_page, to_json

    with exit_on_error():
        check_target(out, STATISTICS)
        tables = set_statistics(data, benchmark)
        text = markdown_page(f"What this set of {get_benchmark(benchmark).title} holds", tables)
        with replacing_folder(out, STATISTICS) as folder:
            (folder / "statistics.md").write_text(text, encoding="utf-8", errors="backslashreplace")
            for name, table in drawn_tables([("", table) for table in tables]).items() if plots else ():
                write_figure(table, folder, name)
    if json:
        print_json([to_json(table) for table in tables])
    print_result(*text.splitlines())
    echo(f"wrote {out / 'statistics.md'}")


@flag_command(app, BuildSettings, config=False, hidden=("options",))
def build(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `check_settings` checks it)
    """Build a dataset folder from a benchmark's release: load_dataset("barista", "relations")."""
    from barista_bench.data.folder import build as make

    with exit_on_error():
        settings = resolve_flags(BuildSettings, flags)
        built = make(**dict(settings))
    dry_run = settings.dry_run
    for name in built.empty:
        warn(f"{name}: no examples in this release: left out")
    tell = print_result if dry_run else echo  # a dry run only reports
    for config in built.configs:
        rows = ", ".join(f"{split} {count}" for split, count in config.rows.items())
        tell(f"{config.name}: {rows}")
        if config.content_hash:
            tell(
                f"  {sum(config.rows.values())} of {config.candidates} candidates, {len(config.skipped)} skipped, "
                f"{len(config.lost)} lost, sha256 {config.content_hash}"
            )
            if dry_run:
                for key, group_counts in config.groups.items():
                    tell(f"  by {key.replace('_', ' ')}: {_counts_text(group_counts)}")
                tell(f"  by class: {_counts_text(config.labels)}")
            left_out = [*config.skipped, *(f"{lost.example_id}: {lost.reason}" for lost in config.lost)]
            for reason in left_out[:_SHOWN_REASONS]:
                warn(f"  left out: {reason}")
            if len(left_out) > _SHOWN_REASONS:
                warn(f"  left out: {len(left_out) - _SHOWN_REASONS} more")
    if built.problems:
        counts = Counter(problem.severity for problem in built.problems)
        warn(f"the release has {counts['error']} errors and {counts['warning']} warnings: see `barista-bench validate`")
    if built.unverified:
        warn(f"{built.unverified} items of the release are unverified, so `publish` refuses this dataset")
    echo("dry run: nothing was written" if dry_run else f"wrote {built.folder}")
    _exit_on_lost_videos(built.lost_videos, built.problems)


@app.command("show trace")
def trace(
    video_id: Annotated[str, typer.Argument(help="Video id.", metavar="VIDEO")],
    frame: Annotated[int, typer.Argument(help="Frame index, from 0.")],
    data: Annotated[Path, typer.Option(help="Dataset folder written by build.")] = Path("barista"),
    within: Annotated[int, typer.Option(help="Show related examples within this many frames on either side.")] = 30,
) -> None:
    """Show the examples of all tasks on one frame, and nearby examples about the same objects."""
    from barista_bench.data import trace as tracing
    from barista_bench.data.frozen import read_frozen
    from barista_bench.data.manifest import DEFAULT_BENCHMARK, read_manifest

    with exit_on_error():
        files = sorted((data / "frozen").glob("*.jsonl"))
        if not files:
            raise ConfigError(f"{data}: no frozen/*.jsonl here. Fix: name the folder that build wrote with --data")
        owner = str(read_manifest(data).get("benchmark", DEFAULT_BENCHMARK))
        traced = tracing.trace({file.stem: read_frozen(file, owner) for file in files}, video_id, frame, within=within)
    print_result(*tracing.as_text(traced).removesuffix("\n").split("\n"))


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
