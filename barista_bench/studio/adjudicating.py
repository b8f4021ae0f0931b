"""Compares two annotators for a lead: shows their agreement and differences, and masks that the lead may take over.

If two projects are given for comparison, their annotators are compared, and the project opened first is the lead's. If
one project is given, its annotator and the lead are compared. Nothing is taken over automatically: the masks and
statements of other annotators are offered like proposals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from barista_bench.annotate.agreement import agreement, keyframe_ious, pair_objects
from barista_bench.annotate.project import Project, VideoFiles
from barista_bench.annotate.propagation import drawn_masks
from barista_bench.annotate.records import Layers
from barista_bench.errors import DataError
from barista_bench.scene_graph.masks import Rle
from barista_bench.studio.workspace import Json


class OtherAnnotator(NamedTuple):
    """One video in another annotator's project; `names` maps the annotator's object ids to the lead's."""

    origin: str
    video: VideoFiles
    names: dict[str, str]

    def masks(self) -> Iterator[tuple[int, str, str, Rle]]:
        """Yield the frame, the lead's object id, the category and the mask of each mask that was drawn."""
        identities = self.video.identities()
        for keyframe in self.video.accepted().keyframes:
            for name, rle in drawn_masks(identities.masks(keyframe)).items():
                yield keyframe.frame, self.names[name], identities.categories[name], rle

    def layers(self) -> Layers:
        """Return the annotator's layers with the lead's object ids."""
        layers, replace = self.video.accepted_layers(), msgspec.structs.replace
        names = {name: self.names.get(name, name) for entry in layers.claims for name in entry.objects}
        return replace(
            layers,
            attributes=[replace(a, object=names[a.object]) for a in layers.attributes],
            relations=[replace(r, source=names[r.source], target=names[r.target]) for r in layers.relations],
        )


def others_videos(lead: VideoFiles, compared: tuple[Project, ...]) -> dict[str, VideoFiles]:
    """Return the lead's video in the other projects, by annotator.

    Projects where this name belongs to another file are left out.
    """
    return {
        origin: project.video(lead.video_id)
        for origin, project in zip(project_labels(compared), compared, strict=True)
        if (source := project.file.videos.get(lead.video_id)) and source.sha256 == lead.source.sha256
    }


def other_annotators(lead: VideoFiles, videos: Mapping[str, VideoFiles]) -> list[OtherAnnotator]:
    """Return the other annotators, with the lead's object ids.

    An object keeps its id unless the lead, or an earlier annotator in `videos`, has the same object under another id.
    """
    others: list[OtherAnnotator] = []
    taken_ids = set(lead.accepted().objects)
    for origin, video in videos.items():
        lead_ids: dict[str, str] = {}
        for before in others:
            lead_ids |= {name: before.names[other] for name, other in pair_objects(before.video, video).items()}
        lead_ids |= pair_objects(lead, video)
        fresh = (name for name in sorted(video.identities().categories) if name not in lead_ids)
        names = lead_ids | {name: f"{origin}:{name}" if name in taken_ids else name for name in fresh}
        taken_ids |= set(names.values())
        others.append(OtherAnnotator(origin, video, names))
    return others


def project_labels(projects: tuple[Project, ...]) -> list[str]:
    """Return the names of the projects' folders; if names are equal, with the parent folders."""
    folders = [project.folder.resolve() for project in projects]
    is_told_apart = len({folder.name for folder in folders}) == len(folders)
    return [folder.name if is_told_apart else f"{folder.parent.name}/{folder.name}" for folder in folders]


def annotator_agreement(projects: tuple[Project, ...], video_id: str) -> Json:
    """Compare the last two projects on one video: scores, and shared keyframes, lowest mean mask IoU first."""
    if len(projects) < 2:
        raise DataError("there is no project to compare with. Fix: name another annotator's project with --compare")
    first, second = (project.video(video_id) for project in projects[-2:])
    keyframes = sorted(keyframe_ious(first, second).items(), key=lambda pair: (pair[1], pair[0]))
    return {
        "annotators": project_labels(projects[-2:]),
        "metrics": agreement(first, second),
        "keyframes": [{"frame": frame, "iou": round(iou, 4)} for frame, iou in keyframes],
    }
