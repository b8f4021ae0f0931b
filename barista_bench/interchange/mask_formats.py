"""Read and write masks of videos in COCO video (lossless, recommended), CVAT 1.1 and DAVIS.

| format | files | identity | lost data |
|---|---|---|---|
| `coco_video` | a JSON file of all videos | `object_id` of a track | nothing |
| `cvat` | an XML file per video | attribute `object`, else label and `group_id`, else the track | nothing |
| `davis` | a folder of palette PNGs per video | the index | overlaps, categories except in `objects.json` |

`annotate import --format NAME` gets masks of another tool into a project through four files:

1. `MaskFormat`, here, is the only list of formats. A new format is added here.
2. The module with the format's name, beside this one; `davis.py` is short. Its `read` yields the masks of each video as
   `MaskTracks` (`scene_graph/masks.py`), and its `write` writes them.
3. `cli/annotate_commands.py`: `import_masks` finds the video of the project, and leaves out frames that it lacks.
4. `annotate/decisions.py`: `decisions_of_tracks` and `keep_accepted` turn the masks into decisions. `accept` checks and
   stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import replacing_folder

if TYPE_CHECKING:
    from barista_bench.scene_graph.masks import MaskTracks

MaskFormat: TypeAlias = Literal["coco_video", "cvat", "davis"]


def read_mask_tracks(source: Path, name: str) -> Iterator[MaskTracks | DataError]:
    """Read the videos of a file or folder. An unusable video is yielded as a DataError.

    Unreadable records are counted in `MaskTracks.left_out` and do not affect other records.

    Raises:
        ConfigError: the format is unknown.
        DataError: the file does not have this format.
    """
    yield from _module_of(name, "read").read(source)


def write_mask_tracks(tracks: Iterable[MaskTracks], out: Path, name: str) -> list[str]:
    """Write videos to a new folder. Return one line per video on written and lost data.

    Raises:
        ConfigError: the format is unknown, or the folder is not empty.
    """
    module = _module_of(name, "written")
    with replacing_folder(out) as folder:
        return module.write(tracks, folder)


def _module_of(name: str, done: str) -> ModuleType:
    if name not in get_args(MaskFormat):
        raise ConfigError(f"format {name!r} is not {done}. Fix: give --format {', '.join(get_args(MaskFormat))}")
    return import_module(f"barista_bench.interchange.{name}")
