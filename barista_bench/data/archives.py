"""Unpacking archives of video folders that somebody else made: what a release needs, and only if harmless.

Of every archive, only `<...>/<video_id>/coco_annotation.json` and `<...>/<video_id>/video.mp4` are written;
files at the top of an archive belong to the video that the archive is named after. One hostile member (a path
that leads elsewhere, a link, a device, a clash of names, a bomb) condemns the whole archive: nothing of it
stays.
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
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from barista_bench.errors import SourceError
from barista_bench.files.paths import name_problem
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE

logger = logging.getLogger(__name__)

_SUFFIX = re.compile(r"\.(zip|tar|tar\.gz|tgz)$", re.IGNORECASE)
_CHUNK_BYTES = 1 << 20
# A tar header (long name, pax record) is read whole: this bounds the memory that one can claim.
_MAX_HEADER_BYTES = 16 << 20
# Below this size, a ratio says nothing: an empty mask repeated over a short video compresses very well.
_RATIO_FREE_BYTES = 256 << 20
_RELEASE_FILES = (ANNOTATION_FILE, VIDEO_FILE)
# Since Python 3.11.4. A second net below the checks of this module.
_DATA_FILTER = getattr(tarfile, "data_filter", None)
_BROKEN = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, struct.error,
    OSError, EOFError, ValueError, RuntimeError, NotImplementedError,
)  # fmt: skip


@dataclass(frozen=True)
class UnpackLimits:
    """Bounds on one archive: number of members, bytes unpacked in all, and unpacked bytes per packed byte."""

    max_members: int = 200_000
    max_bytes: int = 2 << 40
    max_ratio: float = 200.0


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    is_folder: bool
    special: str | None  # what it is, if neither a file nor a folder
    open: Callable[[], IO[bytes]]


def is_archive(name: str) -> bool:
    """Whether a file name ends like an archive that can be unpacked here: .zip, .tar, .tar.gz, .tgz."""
    return _SUFFIX.search(name) is not None


def archive_stem(name: str) -> str:
    """The file name without its folders and without the archive's suffix.

    >>> archive_stem("videos/video_001.tar.gz")
    'video_001'
    """
    return _SUFFIX.sub("", name.rsplit("/", 1)[-1])


def unpack_release(archive: Path, target: Path, *, name: str, limits: UnpackLimits | None = None) -> None:
    """Unpack the release files of `archive` to `target`/<video_id>/, all or nothing, once.

    `name` is the archive's name where it came from (a cached file has none); its suffix tells the format. A
    `target` that exists is complete and stays as it is. Raises SourceError naming archive, member and reason.
    """
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
    try:
        unpacker = _Unpacker(name, temporary, archive.stat().st_size, limits or UnpackLimits())
        read = _zip_members if name.lower().endswith(".zip") else _tar_members
        try:
            with closing(read(archive)) as members:
                for member in members:
                    unpacker.take(member)
        except _BROKEN as error:
            raise SourceError(
                f"{name}: cannot be unpacked ({type(error).__name__}: {error}). "
                f"Remedy: if the file is damaged, delete {archive} and fetch it again"
            ) from error
        unpacker.report()
        _publish(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _publish(temporary: Path, target: Path) -> None:
    temporary.chmod(0o755)  # mkdtemp is for the owner's eyes only
    try:
        temporary.rename(target)
    except OSError:
        # Another process was faster, and its result is as good.
        if not target.is_dir():
            raise


def _zip_members(archive: Path) -> Generator[_Member, None, None]:
    with zipfile.ZipFile(archive) as package:
        for info in package.infolist():
            # filename ends at a NUL byte, orig_filename does not: the check must see what was written.
            yield _Member(
                info.orig_filename,
                info.file_size,
                info.is_dir(),
                _zip_special(info),
                lambda info=info: package.open(info),  # type: ignore[misc]
            )


def _zip_special(info: zipfile.ZipInfo) -> str | None:
    if info.flag_bits & 0x1:
        return "an encrypted file"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "a symbolic link"
    return None if kind in (0, stat.S_IFREG, stat.S_IFDIR) else "a device, pipe or socket"


class _BoundedReader:
    """A stream that reads bounded pieces only: tarfile itself would read a header of any claimed size."""

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
        compressed = packed.read(2) == b"\x1f\x8b"
        packed.seek(0)
        with gzip.GzipFile(fileobj=packed) if compressed else packed as plain:
            reader = _BoundedReader(cast(IO[bytes], plain))
            with tarfile.open(fileobj=cast(IO[bytes], reader), mode="r:") as package:
                for info in package:
                    yield _tar_member(package, info)
                    # tarfile remembers every member it has seen; an archive may have very many.
                    package.members.clear()  # type: ignore[attr-defined]


def _tar_member(package: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    def open_checked() -> IO[bytes]:
        if _DATA_FILTER is not None:
            _DATA_FILTER(info, "/nowhere")
        stream = package.extractfile(info)
        if stream is None:
            raise tarfile.ExtractError(f"{info.name} is no file")
        return stream

    return _Member(info.name, info.size, info.isdir(), _tar_special(info), open_checked)


def _tar_special(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return f"a {'symbolic' if info.issym() else 'hard'} link to {info.linkname!r}"
    if info.issparse():
        return "a sparse file"
    return None if info.isdir() or info.isreg() else "a device, pipe or unknown kind of file"


@dataclass
class _Unpacker:
    """Checks the members of one archive in their order and writes those that belong to a release."""

    archive: str
    folder: Path
    packed_bytes: int
    limits: UnpackLimits
    members: int = 0
    unpacked_bytes: int = 0
    seen: set[str] = field(default_factory=set)
    written: set[tuple[str, str]] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)

    def take(self, member: _Member) -> None:
        parts = self._checked_parts(member)
        self._check_size(member)
        if member.is_folder:
            return
        self._check_unique(member, parts)
        if parts[-1] not in _RELEASE_FILES:
            self.ignored.append(member.name)
            return
        folder = parts[-2] if len(parts) > 1 else archive_stem(self.archive)
        problem = name_problem(folder)  # an archive called `...zip` has the stem `..`
        if problem is not None:
            raise self._refuse(member, f"it would lie in {folder!r}: {problem}")
        self._write(member, folder, parts[-1])

    def report(self) -> None:
        if self.ignored:
            logger.info(
                "%s: left %d members packed that a release does not need, such as %s",
                self.archive, len(self.ignored), self.ignored[0],
            )  # fmt: skip

    def _refuse(self, member: _Member, reason: str, remedy: str = "") -> SourceError:
        remedy = remedy or "if you trust the archive, unpack it yourself and give the folder as the source"
        return SourceError(f"{self.archive}: member {member.name!r} is refused: {reason}. Remedy: {remedy}")

    def _checked_parts(self, member: _Member) -> list[str]:
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
        limits = self.limits
        raise_limit = "raise the limit (UnpackLimits) if the archive is known to be sound"
        if self.members > limits.max_members:
            raise self._refuse(member, f"the archive has more than {limits.max_members} members", raise_limit)
        if member.size < 0 or self.unpacked_bytes > limits.max_bytes:
            reason = f"up to it the archive unpacks to {self.unpacked_bytes} bytes, above {limits.max_bytes}"
            raise self._refuse(member, reason, raise_limit)
        allowed = max(_RATIO_FREE_BYTES, limits.max_ratio * self.packed_bytes)
        if self.unpacked_bytes > allowed:
            reason = (
                f"the archive's {self.packed_bytes} bytes unpack to {self.unpacked_bytes} or more, "
                f"above {limits.max_ratio:g} to 1"
            )
            raise self._refuse(member, reason, raise_limit)

    def _check_unique(self, member: _Member, parts: list[str]) -> None:
        # As a file system without case, or with composed characters, would see it.
        key = unicodedata.normalize("NFC", "/".join(parts)).casefold()
        if key in self.seen:
            raise self._refuse(member, "an earlier member has the same name (case aside)")
        self.seen.add(key)

    def _write(self, member: _Member, video_id: str, file_name: str) -> None:
        key = (unicodedata.normalize("NFC", video_id).casefold(), file_name)
        if key in self.written:
            raise self._refuse(member, f"the archive holds {file_name} of the video {video_id!r} twice")
        self.written.add(key)
        free = shutil.disk_usage(self.folder).free
        if member.size > free:
            remedy = f"free some space at {self.folder.parent}, or set another cache folder"
            raise self._refuse(member, f"it needs {member.size} bytes, and {free} are free", remedy)
        path = self.folder / video_id / file_name
        path.parent.mkdir(exist_ok=True)
        with member.open() as packed, path.open("xb") as plain:
            copied = _copy(packed, plain, member.size)
        if copied != member.size:
            raise self._refuse(member, f"it has {copied} bytes or more instead of the {member.size} it claims")


def _copy(packed: IO[bytes], plain: IO[bytes], size: int) -> int:
    """Copy at most `size` bytes and one; returns how many there were."""
    copied = 0
    while copied <= size:
        chunk = packed.read(min(_CHUNK_BYTES, size + 1 - copied))
        if not chunk:
            break
        plain.write(chunk)
        copied += len(chunk)
    plain.flush()
    os.fsync(plain.fileno())
    return copied
