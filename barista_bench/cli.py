"""`barista-bench`: one command, thin. Every flag is named as the Python keyword that it sets."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barista_bench import __version__
from barista_bench.errors import BaristaError, ConfigError

if TYPE_CHECKING:
    from barista_bench.running.results import Results

app = typer.Typer(
    name="barista-bench",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Evaluate vision-language models on egocentric video, from one scene graph.\n\n"
    "The way of the data: mini or a release -> validate -> build -> run -> score -> report.",
)


class FramesChoice(StrEnum):
    frozen = "frozen"
    linked = "linked"


class SplitChoice(StrEnum):
    all = "all"
    train = "train"
    test = "test"


Progress = Annotated[bool, typer.Option(help="Show progress bars.")]
Root = Annotated[Path | None, typer.Option(help="Folder of the videos of a linked dataset, if they have moved.")]


def main() -> None:
    """The entry point. What this package raises on purpose ends as one line and exit code 1."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    app()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (BaristaError, OSError) as error:
        # OSError: a disk that is full, a folder that is a file or may not be written; its text names the file.
        typer.secho(f"error: {error}", fg="red", err=True)
        raise typer.Exit(1) from error


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command()
def mini(
    out: Annotated[Path, typer.Argument(help="Folder to write the kitchen to.")],
    videos: Annotated[int, typer.Option(help="Number of videos, spread over the three preparation types.")] = 9,
    seed: Annotated[int, typer.Option(help="Same seed, same annotations.")] = 0,
    width: Annotated[int, typer.Option(help="Frame width in pixels.")] = 640,
    height: Annotated[int, typer.Option(help="Frame height in pixels.")] = 360,
    num_proc: Annotated[int, typer.Option(help="Processes.")] = 2,
    progress: Progress = True,
) -> None:
    """Render a small scripted coffee kitchen with a complete scene graph, in the release layout."""
    from barista_bench.mini import write_kitchen

    with _explained():
        folders = write_kitchen(
            out, videos=videos, seed=seed, width=width, height=height, num_proc=num_proc, progress=progress
        )
    typer.echo(f"{len(folders)} videos in {out}")


@app.command()
def validate(
    root: Annotated[Path, typer.Argument(help="Data root: one folder a video.")],
    num_proc: Annotated[int, typer.Option(help="Processes.")] = 1,
    strict: Annotated[bool, typer.Option(help="Exit with code 1 on warnings too.")] = False,
    show: Annotated[int, typer.Option(help="Problems to print at the most.")] = 100,
    progress: Progress = True,
) -> None:
    """Check every record, mask and video of a release. Exit code 1 if there are errors."""
    from barista_bench.scene_graph import validate as check

    with _explained():
        found = check(root, num_proc=num_proc, progress=progress)
    for video in found.videos:
        typer.echo(
            f"{video.video_id}: {video.frames} frames, {video.objects} objects, {video.instances} instances, "
            f"{video.attributes} attribute and {video.relations} relation ranges, {video.activities} activities, "
            f"{video.steps} steps"
        )
    for problem in found.problems[:show]:
        typer.secho(str(problem), fg="red" if problem.severity == "error" else "yellow", err=True)
    if len(found.problems) > show:
        typer.echo(f"... and {len(found.problems) - show} more (--show)", err=True)
    typer.echo(f"{len(found.videos)} usable videos, {found.errors} errors, {found.warnings} warnings")
    if found.errors or (strict and found.warnings):
        raise typer.Exit(1)


@app.command()
def stats(
    root: Annotated[Path, typer.Argument(help="Data root: one folder a video.")],
    out: Annotated[Path, typer.Option(help="Folder for statistics.json, statistics.md and the plots.")] = Path(
        "statistics"
    ),
    plots: Annotated[bool, typer.Option(help="Draw the plots; needs the extra viz.")] = True,
    progress: Progress = True,
) -> None:
    """Count what a release holds: layers, distributions, durations, preparation types."""
    from barista_bench.scene_graph import SceneGraph
    from barista_bench.scene_graph.statistics import statistics, write_statistics

    with _explained():
        found = statistics(SceneGraph(root), progress=progress)
        files = write_statistics(found, out, plots=plots)
    typer.echo(
        f"{found.videos} videos, {found.frames} frames, {found.instances} instances, {found.relation_rows} relations, "
        f"{found.activity_segments} activity segments"
    )
    typer.echo(f"wrote {', '.join(str(file) for file in files)}")


@app.command()
def build(
    source: Annotated[str, typer.Option(help="Data root, or a Hub dataset id such as ramblr/BARISTA.")],
    out: Annotated[Path, typer.Option(help="Dataset folder to write; name it barista to load it by that name.")] = Path(
        "barista"
    ),
    configs: Annotated[
        list[str] | None, typer.Option(help="A config to write; may be given several times. All by default.")
    ] = None,
    frames: Annotated[
        FramesChoice, typer.Option(help="Store the pixels (frozen), or decode from the videos (linked).")
    ] = FramesChoice.frozen,
    sampling: Annotated[
        list[str] | None,
        typer.Option(help="Override of the published sampling, e.g. limit=50 or relations.frame_step=100."),
    ] = None,
    split_file: Annotated[Path | None, typer.Option(help='JSON {"train": [video ids], "test": [video ids]}.')] = None,
    revision: Annotated[str | None, typer.Option(help="Commit of a Hub dataset.")] = None,
    jpeg_quality: Annotated[int, typer.Option(help="Of frozen frames. 75 is what the released harness sends.")] = 75,
    cache: Annotated[bool, typer.Option(help="Also prepare the datasets cache, to load from any folder.")] = True,
    strict: Annotated[bool, typer.Option(help="Stop at the first error in the release.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the examples, by preparation and class.")
    ] = False,
    progress: Progress = True,
) -> None:
    """Make a dataset folder from a release: load_dataset("barista", "relations")."""
    from barista_bench.builders.barista import CONFIGS
    from barista_bench.builders.folder import build as make

    with _explained():
        built = make(
            source,
            out,
            configs=tuple(configs) if configs else CONFIGS,
            frames=frames.value,
            sampling=parse_overrides(sampling or []),
            split_file=str(split_file) if split_file else None,
            revision=revision,
            jpeg_quality=jpeg_quality,
            cache=cache,
            strict=strict,
            dry_run=dry_run,
            progress=progress,
        )
    for name in built.empty:
        typer.secho(f"{name}: no example in this release: left out", fg="yellow", err=True)
    for config in built.configs:
        rows = ", ".join(f"{split} {count}" for split, count in config.rows.items())
        typer.echo(f"{config.name}: {rows}")
        if config.content_hash:
            typer.echo(
                f"  {sum(config.rows.values())} of {config.candidates} candidates, {len(config.skipped)} skipped, "
                f"{len(config.lost)} lost, sha256 {config.content_hash}"
            )
            if dry_run:
                typer.echo(f"  by preparation: {_counted(config.preparations)}")
                typer.echo(f"  by class: {_counted(config.labels)}")
            for reason in [*config.skipped, *(f"{lost.example_id}: {lost.reason}" for lost in config.lost)][:20]:
                typer.secho(f"  left out: {reason}", fg="yellow", err=True)
    counts = Counter(problem.severity for problem in built.problems)
    if built.problems:
        typer.secho(
            f"the release has {counts['error']} errors and {counts['warning']} warnings: see `barista-bench validate`",
            fg="yellow",
            err=True,
        )
    typer.echo("dry run: nothing was written" if dry_run else f"wrote {built.folder}")


@app.command()
def run(
    data: Annotated[str, typer.Argument(help="Dataset folder, name in the datasets cache, or Hub dataset id.")],
    out: Annotated[Path, typer.Option(help="Run folder. Start again with the same one to go on.")],
    task: Annotated[str, typer.Option(help="Config to run.")] = "relations",
    model: Annotated[
        str, typer.Option(help="oracle, chance, tiny, a local checkpoint folder, or a Hub id.")
    ] = "oracle",
    split: Annotated[
        SplitChoice, typer.Option(help="The published numbers use all; a trained model wants test.")
    ] = SplitChoice.all,
    runs: Annotated[int, typer.Option(help="Repetitions; the protocol asks for three.")] = 3,
    limit: Annotated[int | None, typer.Option(help="Only the first so many examples.")] = None,
    root: Root = None,
    temperature: Annotated[float, typer.Option(help="0 for greedy decoding.")] = 0.7,
    max_new_tokens: Annotated[int, typer.Option(help="The most tokens an answer may take.")] = 4096,
    batch_size: Annotated[int, typer.Option(help="Requests generated together.")] = 8,
    revision: Annotated[str | None, typer.Option(help="Commit of a Hub checkpoint.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, ...")] = "auto",
    trust_remote_code: Annotated[bool, typer.Option(help="Run code that the checkpoint brings.")] = False,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompt file, or folder of <task>.yaml, instead of our wording.")
    ] = None,
    progress: Progress = True,
) -> None:
    """Ask a model every example; every answer is logged at once, and nothing answered is asked again."""
    from barista_bench.running.runner import run as start

    with _explained():
        session = start(
            data,
            out,
            task=task,
            model=model,
            split=split.value,
            runs=runs,
            limit=limit,
            root=root,
            temperature=temperature,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
            revision=revision,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            prompts=prompts,
            progress=progress,
        )
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in session.seconds.items())
    typer.echo(f"{session.asked} samples answered, {session.already_done} were answered before ({seconds})")
    if session.failed:
        typer.secho(
            f"error: {session.failed} samples failed, first: {session.first_failure}. "
            "Remedy: see to the cause and start the same command again; only they are asked",
            fg="red",
            err=True,
        )
        raise typer.Exit(1)


@app.command()
def trace(
    video_id: Annotated[str, typer.Argument(help="Video id.", metavar="VIDEO")],
    frame: Annotated[int, typer.Argument(help="Frame index, from 0.")],
    data: Annotated[Path, typer.Option(help="Dataset folder made by build.")] = Path("barista"),
    within: Annotated[int, typer.Option(help="Frames to either side in which related examples are shown.")] = 30,
) -> None:
    """Show the examples of all tasks on one frame, and those near it about the same objects."""
    from barista_bench.builders import trace as tracing
    from barista_bench.builders.frozen import read_frozen

    with _explained():
        files = sorted((data / "frozen").glob("*.jsonl"))
        if not files:
            raise ConfigError(f"{data}: no frozen/*.jsonl here. Remedy: name the folder that build wrote with --data")
        found = tracing.trace({file.stem: read_frozen(file) for file in files}, video_id, frame, within=within)
    typer.echo(tracing.as_text(found), nl=False)


@app.command()
def score(
    folder: Annotated[Path, typer.Argument(help="Run folder.")],
    data: Annotated[str | None, typer.Option(help="Where the dataset lies now, if it has moved.")] = None,
    root: Root = None,
) -> None:
    """Score a run from its log: writes results.json and scores.jsonl. The model is not asked."""
    from barista_bench.running.scoring import score as score_run

    with _explained():
        scored = score_run(folder, data=data, root=root)
    typer.echo(summary_line(scored.results))


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of one task, side by side in one report.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html and report.md.")] = Path("report"),
    samples: Annotated[int, typer.Option(help="Samples to show with their pictures.")] = 60,
    data: Annotated[str | None, typer.Option(help="Where the dataset lies now, if it has moved.")] = None,
    root: Root = None,
) -> None:
    """Score runs and write a self-contained HTML page and a Markdown table."""
    from barista_bench.reporting import write_report
    from barista_bench.running.scoring import score as score_run

    with _explained():
        scored = [score_run(folder, data=data, root=root) for folder in folders]
        html, markdown = write_report(scored, out, samples=samples)
    for run_ in scored:
        typer.echo(summary_line(run_.results))
    typer.echo(f"wrote {html} and {markdown}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def summary_line(results: Results) -> str:
    """One line with the primary figure, its spread and the coverage."""
    figure, coverage = results.figures[results.primary], results.coverage
    spread = f" ± {figure.std:.3f}" if figure.std is not None else ""
    statuses = ", ".join(f"{name} {count}" for name, count in coverage.statuses.items() if count)
    incomplete = "" if coverage.complete else " INCOMPLETE"
    return (
        f"{results.dataset.task}, {results.model.name}: {results.primary} {figure.mean:.3f}{spread} "
        f"over {len(figure.runs)} run(s), "
        f"{coverage.answered}/{coverage.expected} answered ({statuses}){incomplete}"
    )


def parse_overrides(pairs: list[str]) -> dict[str, Any]:
    """`name=value` or `task.name=value` pairs, values as JSON where they are JSON, else as text.

    Raises:
        ConfigError: a pair has no `=`.

    >>> parse_overrides(["limit=100", "relations.frame_step=50"])
    {'limit': 100, 'relations': {'frame_step': 50}}
    """
    overrides: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{pair!r} is no setting. Remedy: write name=value")
        task, dot, own = name.partition(".")
        place = overrides.setdefault(task, {}) if dot else overrides
        if not isinstance(place, dict):
            raise ConfigError(f"{pair!r} contradicts {task}={place}. Remedy: leave one out")
        try:
            place[own if dot else name] = json.loads(value)
        except ValueError:
            place[own if dot else name] = value
    return overrides
