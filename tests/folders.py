"""The content of a folder, and archives of such folders, as tests make and compare them."""

import io
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def packed(kind: str, members: Iterable[tuple[str | zipfile.ZipInfo | tarfile.TarInfo, bytes]]) -> bytes:
    """An archive of this kind (zip, tar, tar.gz, tgz) of members by their names, or by more of their headers."""
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, body in members:
                assert not isinstance(name, tarfile.TarInfo)
                archive.writestr(name, body)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz" if "gz" in kind else "w") as archive:
            for name, body in members:
                assert not isinstance(name, zipfile.ZipInfo)
                info = tarfile.TarInfo(name) if isinstance(name, str) else name
                info.size = len(body)
                archive.addfile(info, io.BytesIO(body))
    return buffer.getvalue()
