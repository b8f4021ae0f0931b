"""The pages' scripts and styles, as far as biome and tsc do not hold them: `make lint` and `make types` run those."""

import re
from collections import Counter
from pathlib import Path

import pytest

from barista_bench.reporting.html import joined_script
from barista_bench.studio.web import STATIC

TEMPLATES = STATIC.parents[1] / "reporting" / "templates"
VENDORED = ("konva.min.js", "icons.css")
WRITTEN_HERE = [
    path
    for folder in (STATIC, TEMPLATES)
    for path in sorted(folder.iterdir())
    if path.suffix in (".js", ".ts", ".css") and path.name not in VENDORED
]


@pytest.mark.parametrize("path", WRITTEN_HERE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_of_the_pages_is_short_in_lines_of_at_most_120_characters(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 400
    assert [number for number, line in enumerate(lines, 1) if len(line) > 120] == []


def test_the_report_is_one_script_of_all_its_modules_each_before_those_that_import_it() -> None:
    script = joined_script("main.js")
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    places = {}
    for path in TEMPLATES.glob("*.js"):
        title = path.read_text(encoding="utf-8").splitlines()[0]
        assert script.count(title) == 1, path.name
        places[path.name] = script.index(title)
    for path in TEMPLATES.glob("*.js"):
        for imported in re.findall(r'^import .*"\./(.*)";$|^\} from "\./(.*)";$', path.read_text(), re.MULTILINE):
            assert places["".join(imported)] < places[path.name], path.name


def test_no_two_modules_of_the_report_use_one_name_as_they_share_a_script() -> None:
    declared = re.findall(
        r"^(?:const|let|class|function|async function) (?:\{ )?(\w+)", joined_script("main.js"), re.MULTILINE
    )
    assert [name for name, count in Counter(declared).items() if count > 1] == []
