"""Unpack untrusted archives of video folders: all files of a release, or none.

Only `<...>/<video_id>/coco_annotation.json` and `<...>/<video_id>/video.mp4` are unpacked, each into a folder that is
named after its video. Files at the top of an archive belong to the video that has the archive's name. All other
members are ignored: their paths, links and devices reach no disk.
"""

from __future__ import annotations

import gzip
import logging
import os
import re
import shutil
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple, cast

from barista_bench.errors import SourceError
from barista_bench.files.paths import name_problem
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE

log = logging.getLogger(__name__)

_SUFFIX = re.compile(r"\.(zip|tar|tar\.gz|tgz)$", re.IGNORECASE)
# A tar header (long name, pax record) is read at once. This limits the memory that a header can claim.
_MAX_HEADER_BYTES = 16 << 20
# Below this size, a ratio says nothing: an empty mask repeated over a short video compresses very well.
_RATIO_FREE_BYTES = 256 << 20
_SHOWN = 300
"""Number of characters of a member's name in messages. A name may have millions."""
MAX_RATIO = 200.0
"""Maximum ratio of unpacked to packed bytes in one archive."""
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, struct.error,
    OSError, EOFError, ValueError, RuntimeError, NotImplementedError,
)  # fmt: skip


class _Member(NamedTuple):
    name: str
    is_file: bool
    """Whether the member is a plain file: no folder, link, device or sparse file."""
    size: int
    unpacked_bytes: int
    """Number of bytes of the unpacked archive up to the end of the member."""
    open: Callable[[], IO[bytes] | None]


def is_archive(name: str) -> bool:
    """Return True for file names of archives that can be unpacked here: .zip, .tar, .tar.gz, .tgz."""
    return _SUFFIX.search(name) is not None


def archive_stem(name: str) -> str:
    """Return the file name without its folders and without the archive's suffix.

    >>> archive_stem("videos/video_001.tar.gz")
    'video_001'
    """
    return _SUFFIX.sub("", name.rsplit("/", 1)[-1])


def unpack_release(archive: Path, target: Path, *, name: str) -> None:
    """Unpack the release files of `archive` to `target`/<video_id>/: all files or none, and only once.

    `name` is the archive's original name, since a cached file has another name. The suffix of `name` gives the format.
    An existing `target` is complete and stays unchanged. Raises SourceError, which names archive, member and reason.
    """
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".unpacking-", dir=target.parent, ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary, "release")
        folder.mkdir()
        members = _zip_members(archive) if name.lower().endswith(".zip") else _tar_members(archive)
        try:
            with closing(members):
                _unpack_members(members, folder, name, archive.stat().st_size)
        except _DAMAGED as error:
            raise SourceError(
                f"{name}: cannot be unpacked ({type(error).__name__}: {error}). "
                f"Fix: if the file is damaged, delete {archive} and fetch it again"
            ) from error
        try:
            folder.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another process was faster, and its result is equal
                raise


def _unpack_members(members: Generator[_Member, None, None], folder: Path, archive: str, packed_bytes: int) -> None:
    written_files, ignored_count, first_ignored = set[str](), 0, ""
    for member in members:
        if member.unpacked_bytes > max(_RATIO_FREE_BYTES, MAX_RATIO * packed_bytes):
            ratio = f"unpack to {member.unpacked_bytes} or more, above {MAX_RATIO:g} to 1"
            raise _refusal(archive, member, f"the archive's {packed_bytes} bytes {ratio}")
        *folders, file_name = [part for part in member.name.split("/") if part not in ("", ".")] or [""]
        if not member.is_file or file_name not in (ANNOTATION_FILE, VIDEO_FILE):
            ignored_count, first_ignored = ignored_count + 1, first_ignored or member.name[:_SHOWN]
            continue
        video_id = folders[-1] if folders else archive_stem(archive)
        problem = name_problem(video_id)  # an archive called `...zip` has the stem `..`
        if problem is not None:
            raise _refusal(archive, member, f"it would lie in {video_id!r}: {problem}")
        # The name as a file system without case, or with composed characters, sees it.
        key = unicodedata.normalize("NFC", f"{video_id}/{file_name}").casefold()
        if key in written_files:
            raise _refusal(archive, member, f"the archive holds {file_name} of the video {video_id!r} twice")
        written_files.add(key)
        _write(member, folder / video_id / file_name, archive)
    if ignored_count:
        log.info(
            "%s: left %d members packed that a release does not need, such as %s", archive, ignored_count, first_ignored
        )


def _write(member: _Member, path: Path, archive: str) -> None:
    free_bytes = shutil.disk_usage(path.parents[1]).free
    if member.size > free_bytes:
        remedy = f"free some space at {path.parents[3]}, or set another cache folder"
        raise _refusal(archive, member, f"it needs {member.size} bytes, and {free_bytes} are free", remedy)
    path.parent.mkdir(exist_ok=True)
    with cast(IO[bytes], member.open()) as packed, path.open("xb") as plain:
        shutil.copyfileobj(packed, plain)
        plain.flush()
        os.fsync(plain.fileno())  # a folder with its final name is complete, also after a loss of power


def _refusal(archive: str, member: _Member, reason: str, remedy: str = "") -> SourceError:
    remedy = remedy or "if you trust the archive, unpack it yourself and give the folder as the source"
    return SourceError(f"{archive}: member {member.name[:_SHOWN]!r} is refused: {reason}. Fix: {remedy}")


def _zip_members(archive: Path) -> Generator[_Member, None, None]:
    unpacked_bytes = 0
    with zipfile.ZipFile(archive) as package:
        for info in package.infolist():
            unpacked_bytes += info.file_size
            is_file = not info.is_dir() and stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            yield _Member(info.filename, is_file, info.file_size, unpacked_bytes, partial(package.open, info))


class _BoundedReader:
    """A stream that reads only bounded pieces. tarfile itself would read a header of any claimed size."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.seek = stream.seek
        self.tell = stream.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header claims {size} bytes")
        return self._stream.read(size)


def _tar_members(archive: Path) -> Generator[_Member, None, None]:
    with archive.open("rb") as packed:
        is_gzip = packed.read(2) == b"\x1f\x8b"
        packed.seek(0)
        with gzip.GzipFile(fileobj=packed) if is_gzip else packed as plain:
            reader = _BoundedReader(cast(IO[bytes], plain))
            with tarfile.open(fileobj=cast(IO[bytes], reader), mode="r:") as package:
                for info in package:
                    end = package.offset  # of this member's data in the unpacked archive
                    if end < info.offset_data:  # tarfile would read the same members again and again
                        raise tarfile.ReadError("a header claims a negative size")
                    is_file = info.isreg() and not info.issparse()
                    yield _Member(info.name, is_file, info.size, end, partial(package.extractfile, info))
                    # tarfile remembers every member that it has seen, and an archive may have very many members.
                    package.members.clear()  # type: ignore[attr-defined]
