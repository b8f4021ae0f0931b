"""Fetch what the studio ships of others, from npm, as `vendor.json` names it: `python scripts/vendor.py`.

For a newer version, change `version` there, run this with `--accept`, and read what has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

STATIC = Path(__file__).resolve().parents[1] / "barista_bench" / "studio" / "static"
LISTED = STATIC / "vendor.json"


def fetched(package: str, version: str, path: str) -> bytes:
    """One file of a package of npm."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True, capture_output=True, text=True
        )
        with tarfile.open(Path(folder) / packed.stdout.strip().splitlines()[-1]) as archive:
            member = archive.extractfile(path)
            if member is None:
                raise SystemExit(f"{package} {version}: {path} is no file of it")
            return member.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="write new hashes down instead of refusing them")
    accept = parser.parse_args().accept
    listed = json.loads(LISTED.read_text())
    for name, facts in listed.items():
        content = fetched(facts["package"], facts["version"], facts["path"])
        digest = hashlib.sha256(content).hexdigest()
        if digest != facts["sha256"] and not accept:
            raise SystemExit(f"{name}: SHA-256 {digest}, expected {facts['sha256']}. Remedy: see why; then --accept")
        facts["sha256"] = digest
        (STATIC / name).write_bytes(content)
    LISTED.write_text(json.dumps(listed, indent=1) + "\n")


if __name__ == "__main__":
    main()
