"""Fetch the files of other projects that pages use from npm, as listed in `vendor.json`: `python scripts/vendor.py`.

Files are copied unchanged. From an icon set, a style sheet is made with the named icons and the set's licence. For a
newer version or another icon, change `vendor.json`, run this script with `--accept`, and review the changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1] / "barista_bench"
LISTED = Path(__file__).with_name("vendor.json")


def unpack(package: str, version: str, folder: str) -> Callable[[str], bytes]:
    """Return a function that reads the files of an npm package by their paths."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True, capture_output=True, text=True
    )
    with tarfile.open(Path(folder) / packed.stdout.strip().splitlines()[-1]) as archive:
        archive.extractall(folder, filter="data")
    return lambda path: (Path(folder) / path).read_bytes()


def style_sheet(read: Callable[[str], bytes], version: str, icons: list[str]) -> bytes:
    """Return Lucide's icons as masks in the text colour. `data-icon="NAME"` puts an icon before an element's text."""
    licence = read("package/LICENSE").decode().strip()
    addresses = {name: as_address(read(f"package/icons/{name}.svg")) for name in icons}
    rules = [f'[data-icon="{name}"] {{ --icon: url("{address}") }}' for name, address in addresses.items()]
    return "\n".join([f"/* Icons of Lucide {version}.\n\n{licence}\n*/", *rules, ""]).encode()


def as_address(picture: bytes) -> str:
    """Return an SVG file as a `data:` address, without parts that a mask does not need."""
    comment, _, text = picture.decode().partition("-->")
    assert comment.startswith("<!--"), "the licence, which stands in the style sheet once"
    text = re.sub(r'\s+(class="[^"]*"|width="24"|height="24")', "", text)
    text = re.sub(r">\s+<", "><", re.sub(r"\s+", " ", text)).strip().replace('"', "'").replace(" />", "/>")
    return "data:image/svg+xml," + quote(text, safe=" ='/:.,-()")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="write new hashes down instead of refusing them")
    accept = parser.parse_args().accept
    listed = json.loads(LISTED.read_text(encoding="utf-8"))
    for name, facts in listed.items():
        with tempfile.TemporaryDirectory() as folder:
            read = unpack(facts["package"], facts["version"], folder)
            content = style_sheet(read, facts["version"], facts["icons"]) if "icons" in facts else read(facts["path"])
        digest = hashlib.sha256(content).hexdigest()
        if digest != facts.get("sha256") and not accept:
            raise SystemExit(f"{name}: SHA-256 {digest}, not {facts.get('sha256')}. Fix: see why; then --accept")
        facts["sha256"] = digest
        (ROOT / name).write_bytes(content)
    LISTED.write_text(json.dumps(listed, indent=1) + "\n")


if __name__ == "__main__":
    main()
