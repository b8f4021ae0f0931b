"""Read and write masks of videos in the formats of other tools: `annotate import` and `annotate export`.

A new format needs four files:

1. Here, its name in `WrittenFormat`, or in `ReadFormat` if we do not write it.
2. A module of that name beside this one; `davis.py` is short. Its `read` yields the masks of each video as `MaskTracks`
   (`scene_graph/masks.py`), and its `write` writes them.
3. A module of that name beside `tests/other_graphs/samples/davis.py`, with a small file for all tests of formats.
4. docs/other_graphs.md: a row in "Masks". `python -m tests.other_graphs.odd_files` writes a column of "Odd files".

Then `import_masks` (`cli/annotate_commands.py`) finds the video of the project, and leaves out frames that it lacks.
`decisions_of_tracks` and `keep_accepted` (`annotate/decisions.py`) turn the masks into decisions. `accept` checks and
stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import replacing_folder

if TYPE_CHECKING:
    from barista_bench.scene_graph.masks import MaskTracks

WrittenFormat: TypeAlias = Literal["release", "coco_video", "cvat", "davis"]
"""The formats of `annotate export`. Each is a module here, except `RELEASE`."""
ReadFormat: TypeAlias = Literal[WrittenFormat]
"""The formats of `annotate import`: the written formats, and after them the formats that are only read."""
RELEASE: Final = "release"
"""The format that has more than masks. `SceneGraph` reads it, and `export_project` writes it."""


def read_mask_tracks(source: Path, name: str) -> Iterator[MaskTracks | DataError]:
    """Read the videos of a file or folder. An unusable video is yielded as a DataError.

    Unreadable records are counted in `MaskTracks.left_out` and do not affect other records.

    Raises:
        ConfigError: the format is unknown.
        DataError: the file does not have this format.
    """
    yield from _module_of(name, get_args(ReadFormat), "read").read(source)


def write_mask_tracks(tracks: Iterable[MaskTracks], out: Path, name: str) -> list[str]:
    """Write videos to a new folder. Return one line per video on written and lost data.

    Raises:
        ConfigError: the format is unknown or only read, or the folder is not empty.
    """
    module = _module_of(name, get_args(WrittenFormat), "written")
    with replacing_folder(out) as folder:
        return module.write(tracks, folder)


def _module_of(name: str, formats: tuple[str, ...], done: str) -> ModuleType:
    names = [known for known in formats if known != RELEASE]
    if name not in names:
        raise ConfigError(f"format {name!r} is not {done}. Fix: give --format {', '.join(names)}")
    return import_module(f"barista_bench.interchange.{name}")
