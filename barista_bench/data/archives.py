"""Unpack untrusted archives of video folders: only the files of a release, and only if the archive is harmless.

Only `<...>/<video_id>/coco_annotation.json` and `<...>/<video_id>/video.mp4` are unpacked from an archive. Files at the
top of an archive belong to the video that has the archive's name. If one member is hostile (a path that leads
elsewhere, a link, a device, a clash of names, a bomb), the archive is refused and no unpacked file remains.
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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple, cast

from barista_bench.errors import SourceError
from barista_bench.files.paths import name_problem
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE

log = logging.getLogger(__name__)

_SUFFIX = re.compile(r"\.(zip|tar|tar\.gz|tgz)$", re.IGNORECASE)
_CHUNK_BYTES = 1 << 20
# A tar header (long name, pax record) is read at once. This limits the memory that a header can claim.
_MAX_HEADER_BYTES = 16 << 20
# Below this size, a ratio says nothing: an empty mask repeated over a short video compresses very well.
_RATIO_FREE_BYTES = 256 << 20
MAX_MEMBERS = 200_000
MAX_BYTES = 2 << 40
"""Maximum number of unpacked bytes of one archive."""
MAX_RATIO = 200.0
"""Maximum ratio of unpacked to packed bytes in one archive."""
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, struct.error,
    OSError, EOFError, ValueError, RuntimeError, NotImplementedError,
)  # fmt: skip


class _Member(NamedTuple):
    name: str
    size: int
    is_folder: bool
    special: str | None
    """The kind of an entry that is neither a file nor a folder."""
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
        unpacker = _Unpacker(name, folder, archive.stat().st_size)
        members = _zip_members(archive) if name.lower().endswith(".zip") else _tar_members(archive)
        try:
            with closing(members):
                for member in members:
                    unpacker.unpack(member)
        except _DAMAGED as error:
            raise SourceError(
                f"{name}: cannot be unpacked ({type(error).__name__}: {error}). "
                f"Fix: if the file is damaged, delete {archive} and fetch it again"
            ) from error
        if unpacker.ignored:
            log.info(
                "%s: left %d members packed that a release does not need, such as %s",
                name, len(unpacker.ignored), unpacker.ignored[0],
            )  # fmt: skip
        try:
            folder.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another process was faster, and its result is equal
                raise


def _zip_members(archive: Path) -> Generator[_Member, None, None]:
    with zipfile.ZipFile(archive) as package:
        for info in package.infolist():
            kind, special = stat.S_IFMT(info.external_attr >> 16), None
            if info.flag_bits & 0x1:
                special = "an encrypted file"
            elif kind == stat.S_IFLNK:
                special = "a symbolic link"
            elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                special = "a device, pipe or socket"
            # `filename` ends at a NUL byte but `orig_filename` does not, and the check must see the original name.
            yield _Member(info.orig_filename, info.file_size, info.is_dir(), special, partial(package.open, info))


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
                    special = None
                    if info.issym() or info.islnk():
                        special = f"a {'symbolic' if info.issym() else 'hard'} link to {info.linkname!r}"
                    elif info.issparse():
                        special = "a sparse file"
                    elif not (info.isdir() or info.isreg()):
                        special = "a device, pipe or unknown kind of file"
                    yield _Member(info.name, info.size, info.isdir(), special, partial(package.extractfile, info))
                    # tarfile remembers every member that it has seen, and an archive may have very many members.
                    package.members.clear()  # type: ignore[attr-defined]


@dataclass
class _Unpacker:
    """Checks the members of one archive in order, and writes the files of a release."""

    archive: str
    folder: Path
    packed_bytes: int
    members: int = 0
    unpacked_bytes: int = 0
    names: set[str] = field(default_factory=set)
    written_files: set[tuple[str, str]] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)

    def unpack(self, member: _Member) -> None:
        parts = self._path_parts(member)
        self._check_size(member)
        if member.is_folder:
            return
        # The name as a file system without case, or with composed characters, sees it.
        name = unicodedata.normalize("NFC", "/".join(parts)).casefold()
        if name in self.names:
            raise self._refuse(member, "an earlier member has the same name (case aside)")
        self.names.add(name)
        if parts[-1] not in (ANNOTATION_FILE, VIDEO_FILE):
            self.ignored.append(member.name)
            return
        folder = parts[-2] if len(parts) > 1 else archive_stem(self.archive)
        problem = name_problem(folder)  # an archive called `...zip` has the stem `..`
        if problem is not None:
            raise self._refuse(member, f"it would lie in {folder!r}: {problem}")
        self._write(member, folder, parts[-1])

    def _refuse(self, member: _Member, reason: str, remedy: str = "") -> SourceError:
        remedy = remedy or "if you trust the archive, unpack it yourself and give the folder as the source"
        return SourceError(f"{self.archive}: member {member.name!r} is refused: {reason}. Fix: {remedy}")

    def _path_parts(self, member: _Member) -> list[str]:
        if member.name.startswith("/"):
            raise self._refuse(member, "its path is absolute")
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        for part in parts:
            problem = name_problem(part)
            if problem is not None:
                raise self._refuse(member, f"its path holds {part!r}: {problem}")
        if member.special is not None:
            raise self._refuse(member, f"it is {member.special}")
        if not parts and not member.is_folder:
            raise self._refuse(member, "it has no name")
        return parts

    def _check_size(self, member: _Member) -> None:
        self.members += 1
        self.unpacked_bytes += member.size
        unpacked = self.unpacked_bytes
        reason = None
        if self.members > MAX_MEMBERS:
            reason = f"the archive has more than {MAX_MEMBERS} members"
        elif member.size < 0 or unpacked > MAX_BYTES:
            reason = f"up to it the archive unpacks to {unpacked} bytes, above {MAX_BYTES}"
        elif unpacked > max(_RATIO_FREE_BYTES, MAX_RATIO * self.packed_bytes):
            ratio = f"{MAX_RATIO:g} to 1"
            reason = f"the archive's {self.packed_bytes} bytes unpack to {unpacked} or more, above {ratio}"
        if reason:
            raise self._refuse(member, reason)

    def _write(self, member: _Member, video_id: str, file_name: str) -> None:
        key = (unicodedata.normalize("NFC", video_id).casefold(), file_name)
        if key in self.written_files:
            raise self._refuse(member, f"the archive holds {file_name} of the video {video_id!r} twice")
        self.written_files.add(key)
        free_bytes = shutil.disk_usage(self.folder).free
        if member.size > free_bytes:
            remedy = f"free some space at {self.folder.parent.parent}, or set another cache folder"
            raise self._refuse(member, f"it needs {member.size} bytes, and {free_bytes} are free", remedy)
        path = self.folder / video_id / file_name
        path.parent.mkdir(exist_ok=True)
        stream = member.open()
        if stream is None:
            raise self._refuse(member, "it is not a file")
        copied_bytes = 0
        with stream as packed, path.open("xb") as plain:
            # Reading one byte more than claimed is enough to detect a wrong size.
            while chunk := packed.read(min(_CHUNK_BYTES, member.size + 1 - copied_bytes)):
                plain.write(chunk)
                copied_bytes += len(chunk)
            plain.flush()
            os.fsync(plain.fileno())
        if copied_bytes != member.size:
            raise self._refuse(member, f"it has {copied_bytes} bytes or more instead of the {member.size} it claims")
