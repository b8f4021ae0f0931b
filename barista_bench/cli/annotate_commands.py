"""Commands of `annotate`, which turn a video into a scene graph."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec
import typer
from pydantic import Field, model_validator

from barista_bench.cli.app import Cluster, app, exit_on_error
from barista_bench.cli.flags import flag_command, named_flags
from barista_bench.cli.output import echo, print_result, warn
from barista_bench.cli.tree import Commands
from barista_bench.core.model_names import ABLATIONS, SCRIPTED
from barista_bench.errors import DataError
from barista_bench.interchange.mask_formats import RELEASE, ReadFormat, WrittenFormat
from barista_bench.runs.ask.config import ModelSettings, resolve_settings

if TYPE_CHECKING:
    from barista_bench.annotate.decisions import Decisions
    from barista_bench.annotate.project import Project, VideoFiles
    from barista_bench.scene_graph.masks import MaskTracks

group = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)
app.add_typer(group, name="annotate")

ProjectFolder = Annotated[Path, typer.Argument(help="Project folder.")]
Processes = Annotated[int, typer.Option(help="Processes.")]
By = Annotated[str | None, typer.Option(help="Name of the person who decides, if the file does not name one.")]

AddNames = Annotated[
    bool, typer.Option("--add-names", help="Add attribute values that the project's vocabulary lacks.")
]


@group.callback()
def _require_libraries() -> None:
    """Annotate videos: start -> studio (or accept) -> run -> export. See docs/your_own_videos.md."""
    with exit_on_error():
        importlib.import_module("barista_bench.annotate")  # names the missing package and how to install it


@group.command()
def start(
    project: ProjectFolder,
    videos: Annotated[Path, typer.Option(help="Folder of videos: NAME.mp4, or NAME/video.mp4.")],
    vocabulary: Annotated[Path | None, typer.Option(help="Domain file; coffee making by default.")] = None,
    propagator: Annotated[str, typer.Option(help="flow, copy_nearest, lucas_kanade or sam:CHECKPOINT.")] = "flow",
    num_proc: Processes = 1,
) -> None:
    """Create a project from all videos in a folder.

    Every frame is decoded once, so that damage is found before work begins. A minute of 1080p takes about 8 seconds.
    """
    from barista_bench.annotate.project import other_files, start_project as make, track_notes
    from barista_bench.annotate.stages import propagator_of

    began = time.monotonic()
    with exit_on_error():
        propagator_of(propagator)
        new_project = make(project, videos, vocabulary, propagator=propagator, num_proc=num_proc)
        notes = track_notes(new_project)
    frames = sum(source.frames for source in new_project.file.videos.values())
    echo(f"decoded {frames} frames in {time.monotonic() - began:.0f} s")
    for note in notes:
        warn(note)
    for name, problem in new_project.file.lost.items():
        warn(f"lost: {name}: {problem}")
    if others := other_files(videos):
        warn(f"skipped, not a video suffix: {', '.join(others[:10])}{' ...' if others[10:] else ''}")
    echo(f"{project}: {len(new_project.file.videos)} videos, {len(new_project.file.lost)} lost")


@group.command()
def run(project: ProjectFolder, num_proc: Processes = 1, cluster: Cluster = None) -> None:
    """Run every stage whose input is ready. Run the command again after an interruption or a decision."""
    from barista_bench.annotate.project import open_project
    from barista_bench.annotate.running import run as run_all

    lost = 0
    with exit_on_error():
        for outcome in run_all(open_project(project), num_proc=num_proc, cluster=cluster):
            if outcome.problem:
                lost += 1
                warn(f"lost: {outcome.video_id}: {outcome.problem}")
                continue
            echo(f"{outcome.video_id}: {', '.join(outcome.made) or 'nothing to do'}")
            if outcome.missing:
                echo(f"  a person is needed: {outcome.missing}")
    if lost:
        echo(f"{lost} videos could not be used")
        raise typer.Exit(1)


@group.command()
def accept(
    project: ProjectFolder,
    source: Annotated[list[Path], typer.Option("--from", help="Decisions: JSON, or CSV of confidences.")],
    by: By = None,
    add_names: AddNames = False,
) -> None:
    """Accept a person's decisions: signals, masks, layers, edits of identities."""
    from barista_bench.annotate.decisions import accept as take_in, read_decisions
    from barista_bench.annotate.project import open_project

    with exit_on_error():
        annotation, problems = open_project(project), []
        for path in source:
            try:
                decisions = read_decisions(path)
                files = take_in(annotation, decisions, by)
                echo(f"{decisions.video}: {', '.join(files) or 'nothing in it'}")
                _report_unknown_terms(annotation, decisions, add_names)
            except DataError as error:
                problems.append(f"{path}: {error}")
        _exit_on_problems(problems, "files")


@group.command("import")
def import_masks(
    project: ProjectFolder,
    source: Annotated[Path, typer.Option("--from", help="File or folder in the format of --format.")],
    source_format: Annotated[ReadFormat, typer.Option("--format", help="Format of the file or folder.")],
    only_asked: Annotated[
        bool, typer.Option("--only-asked", help="Import only the frames that keyframes.json asks for.")
    ] = False,
    video: Annotated[
        str | None, typer.Option(help="The project's video that the masks belong to, if the file has another name.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="On the frames of the file, remove earlier accepted masks that it lacks.")
    ] = False,
    by: By = None,
    add_names: AddNames = False,
) -> None:
    """Import masks from another tool. They count as accepted on the frames that they annotate.

    If the source is a release, contacts, attributes, relations, activities and steps are imported too. Unusable records
    are counted by reason, and the exit code is then 1.
    """
    from barista_bench.annotate.decisions import accept as take_in, decisions_of_tracks, keep_accepted
    from barista_bench.annotate.project import open_project
    from barista_bench.files.text_out import most_frequent_reasons
    from barista_bench.scene_graph.masks import MaskTracks

    with exit_on_error():
        annotation, problems, count_lost = open_project(project), [], 0
        for read_video, left_out in _read_videos(source, source_format):
            try:
                if isinstance(read_video, DataError):
                    raise read_video
                decisions = decisions_of_tracks(read_video) if isinstance(read_video, MaskTracks) else read_video
                decisions = msgspec.structs.replace(decisions, video=_project_video(annotation, decisions.video, video))
                files = annotation.video(decisions.video)
                _check_frame_count(read_video, files)
                inside = [keyframe for keyframe in decisions.keyframes if keyframe.frame < files.source.frames]
                left_out["frames past the end of the video"] += len(decisions.keyframes) - len(inside)
                decisions = msgspec.structs.replace(decisions, keyframes=inside)
                asked_segments = files.asked_segments()
                if only_asked:
                    keyframes = [keyframe for keyframe in decisions.keyframes if keyframe.frame in asked_segments]
                    # changed contacts would request other frames
                    contacts = None if asked_segments else decisions.contacts
                    decisions = msgspec.structs.replace(decisions, keyframes=keyframes, contacts=contacts)
                kept = 0
                if not replace:
                    decisions, kept = keep_accepted(decisions, files.accepted())
                take_in(annotation, decisions, by)
                echo(f"{decisions.video}: {len(decisions.keyframes)} frames, {len(decisions.objects)} objects")
                _report_unknown_terms(annotation, decisions, add_names)
                if kept:
                    echo(f"  {kept} masks accepted earlier, which the file lacks, were kept (--replace removes them)")
                if +left_out:
                    count_lost += sum(left_out.values())
                    warn(f"{decisions.video}: left out: {most_frequent_reasons(+left_out)}")
            except DataError as error:
                problems.append(str(error))
        _exit_on_problems(problems, "videos")
        if count_lost:
            echo(f"{count_lost} records could not be taken")
            raise typer.Exit(1)


def _report_unknown_terms(project: Project, decisions: Decisions, add: bool) -> None:
    from barista_bench.annotate.project import VOCABULARY_FILE
    from barista_bench.annotate.vocabulary import add_names, unknown_terms

    path = project.folder / VOCABULARY_FILE
    terms = unknown_terms(decisions, project.vocabulary())
    if add and (added := add_names(path, terms)):
        echo(f"  added to {path}: {', '.join(map(str, added))}")
        terms = [term for term in terms if term not in added]
    if terms:
        how = "add them to" if add else "give --add-names, which adds the values of attributes, or add them to"
        warn(
            f"{decisions.video}: not in the vocabulary, so an export leaves them out: "
            f"{', '.join(map(str, terms))}. Fix: {how} {path}"
        )


def _project_video(project: Project, name: str, given: str | None) -> str:
    """Return the project's video for a file: `given`, or the video with the file's name, with or without its suffix."""
    if given is not None:
        return given
    stem = name.rpartition(".")[0]
    return stem if name not in project.file.videos and stem in project.file.videos else name


def _check_frame_count(read_video: MaskTracks | Decisions, files: VideoFiles) -> None:
    """Raise DataError if tracks state another number of frames than the video has."""
    count = getattr(read_video, "frame_count", None)
    if count is not None and count != files.source.frames:
        remedy = "name the pictures by their frame (00000.jpg, 00005.jpg), or annotate all frames"
        what = f"masks of {count} frames for a video of {files.source.frames}"
        raise DataError(f"{files.video_id}: {what}. Fix: {remedy}")


def _read_videos(
    source: Path, source_format: ReadFormat
) -> Iterator[tuple[Decisions | MaskTracks | DataError, Counter[str]]]:
    """Yield each video of a file or folder, or why it cannot be used, and its unusable records by reason."""
    from barista_bench.annotate.converting import decisions_of_graph
    from barista_bench.interchange.mask_formats import read_mask_tracks
    from barista_bench.scene_graph import SceneGraph

    if source_format != RELEASE:
        for tracks in read_mask_tracks(source, source_format):
            yield tracks, Counter() if isinstance(tracks, DataError) else Counter(tracks.left_out)
        return
    graph = SceneGraph(source)
    for video_id in graph.video_ids:
        left_out = Counter[str]()
        try:
            decisions: Decisions | DataError = decisions_of_graph(graph[video_id], left_out=left_out)
        except DataError as error:
            decisions = error
        yield decisions, left_out


def _exit_on_problems(problems: list[str], noun: str) -> None:
    for problem in problems:
        warn(f"lost: {problem}")
    if problems:
        echo(f"{len(problems)} {noun} could not be used")
        raise typer.Exit(1)


class DescribingSettings(ModelSettings):
    """Settings of `annotate describe`. The descriptions are the help texts of the command line."""

    project: Path = Field(description="Folder of the project.")
    model: str = Field(description="A vision-language model: served:NAME, a local checkpoint folder or a Hub id.")

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        from barista_bench.runs.ask.catalog import specialists

        if self.model.partition(":")[0] in {*SCRIPTED, *ABLATIONS, *specialists()}:
            raise ValueError(f"model is {self.model!r}, which cannot describe images")
        return self


_HIDDEN = {"box_format", "threshold", "mask_threshold", "progress"}


@flag_command(group, DescribingSettings, positional="project", hidden=_HIDDEN)
def describe(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Let a vision-language model propose attributes, relations and activities, and write them to described.json.

    Proposals count only after a person accepts them. Run the same command again to resume. A flag overrides the
    environment variable (BARISTA_BENCH_<NAME>), and this variable overrides the settings file (--config).
    """
    from barista_bench.annotate.describing import describe as ask_about
    from barista_bench.annotate.project import open_project
    from barista_bench.runs.ask.catalog import load_model

    file = flags.pop("config")
    with exit_on_error():
        settings = resolve_settings(DescribingSettings, named_flags(flags), file=file)
        project = open_project(settings.project)
        problems = []
        for outcome in ask_about(project, load_model(settings, ()), settings.generation):
            if outcome.problem:
                problems.append(outcome.problem)
                continue
            counts = f"{outcome.answered} of {outcome.questions} questions answered, {outcome.unusable} claims unusable"
            echo(f"{outcome.video_id}: {counts}")
        _exit_on_problems(problems, "videos")


@group.command()
def status(project: ProjectFolder) -> None:
    """Show the state of each video and the decision that it needs next."""
    from barista_bench.annotate.project import open_project
    from barista_bench.annotate.running import missing_masks
    from barista_bench.annotate.stages import AFTER_MASKS, BEFORE_MASKS

    with exit_on_error():
        annotation = open_project(project)
        for video_id in sorted(annotation.file.videos):
            video = annotation.video(video_id)
            states = ", ".join(f"{stage.name} {stage.state(video)}" for stage in (*BEFORE_MASKS, *AFTER_MASKS))
            print_result(f"{video_id}: {states}")
            if missing := missing_masks(video):
                print_result(f"  a person is needed: {missing}")
        for name, problem in annotation.file.lost.items():
            warn(f"lost: {name}: {problem}")


@group.command()
def review(
    project: ProjectFolder,
    show: Annotated[int, typer.Option(help="Frames per video.")] = 10,
    plots: Annotated[Path | None, typer.Option(help="Folder for the plots of each video's signal.")] = None,
) -> None:
    """List the frames that most need a person's attention. The most doubtful frames come first."""
    from barista_bench.annotate.project import open_project
    from barista_bench.annotate.records import ReviewFile

    with exit_on_error():
        annotation = open_project(project)
        for video_id in sorted(annotation.file.videos):
            video = annotation.video(video_id)
            if plots is not None:
                from barista_bench.annotate.segments import plot_signal

                plot_signal(video, plots)
            if not video.has(ReviewFile):
                print_result(f"{video_id}: not propagated yet")
                continue
            for doubt in video.read(ReviewFile).frames[:show]:
                print_result(f"{video_id}: frame {doubt.frame}: {doubt.object}: {doubt.why} ({doubt.doubt:.2f})")


@group.command()
def export(
    project: ProjectFolder,
    out: Annotated[Path, typer.Option(help="New folder.")],
    target_format: Annotated[WrittenFormat, typer.Option("--format", help="Format to write.")] = RELEASE,
    second: Annotated[
        Path | None, typer.Option(help="Another annotator's project of the same videos, to measure agreement.")
    ] = None,
    num_proc: Processes = 1,
) -> None:
    """Write scene graphs in the release layout with statistics, or masks for another tool."""
    from barista_bench.annotate.exporting import as_mask_tracks, export_project as write_release
    from barista_bench.annotate.project import open_project
    from barista_bench.interchange.mask_formats import write_mask_tracks

    with exit_on_error():
        if target_format != RELEASE:
            annotation = open_project(project)
            tracks = (as_mask_tracks(annotation.video(video_id)) for video_id in sorted(annotation.file.videos))
            for line in write_mask_tracks(tracks, out, target_format):
                echo(line)
            return
        statistics = write_release(project, out, second=second, num_proc=num_proc)
    for name, problem in statistics.left_out.items():
        warn(f"left out: {name}: {problem}")
    for video_id, video in statistics.videos.items():
        echo(f"{video_id}: {video.frames} frames, {video.objects} objects, {video.masks} masks")
        if video.left_out:
            echo(f"  not in the vocabulary, left out: {', '.join(video.left_out)}")
    echo(f"wrote {out}")
