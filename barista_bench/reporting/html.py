"""Render the report as one self-contained HTML page. It needs no network and no further files.

Texts of models and annotations are untrusted. The template escapes these texts. The script receives them as JSON
without markup and writes them only into text nodes. The page's policy allows only the included script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from barista_bench.files import text_out
from barista_bench.reporting import pages
from barista_bench.reporting.pages import Details
from barista_bench.reporting.pictures import Album
from barista_bench.reporting.report import Report
from barista_bench.reporting.why import WIDTH, Why

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |async function )", re.MULTILINE)


def render_html(
    report: Report, details: Details, album: Album, *, studio: bool = False, why: Sequence[Why] = ()
) -> str:
    """Return the page.

    `album` holds the pictures of each sample by its position. `studio` tells whether the studio serves the page.
    """
    style = page_style()
    script = joined_script("main.js")
    return (
        page_environment()
        .get_template("report.html.j2")
        .render(
            title=report.title,
            provenance=report.provenance.line,
            studio=studio,
            why=why,
            width=WIDTH,
            warnings=report.warnings,
            style=Markup(style),  # noqa: S704  (our own file)
            script=Markup(script),  # noqa: S704  (our own files)
            policy=content_policy(style, script),
            index=htmlsafe_json_dumps(pages.page_index(report, details.samples, album)),
            blocks=pages.page_blocks(report, details, album),
            pictures=(base64.b64encode(file).decode() for file in album.files),
        )
    )


def page_environment() -> Environment:
    """Return the template environment of pages. It escapes all values."""
    return Environment(
        loader=PackageLoader("barista_bench.reporting"),
        autoescape=True,
        finalize=text_out.prepare_for_template,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def own_template(name: str) -> str:
    """Return a file of the folder `templates`."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8").strip()


def page_style() -> str:
    """Return the style sheet of the report and the studio. It has icons with their licence, colours and controls."""
    return "\n".join([own_template("icons.css"), own_template("report.css")])


def joined_script(name: str) -> str:
    """Join a module and its imports to one script. The page cannot load other scripts, and its policy has one hash.

    Names of all modules share one scope, and a browser refuses a script that declares a name twice.
    """
    modules: dict[str, str] = {}

    def add(module: str) -> None:
        text = own_template(module)
        for imported in _IMPORT.findall(text):
            if imported not in modules:
                add(imported)
        modules[module] = _EXPORT.sub("", _IMPORT.sub("", text))

    add(name)
    return "\n".join(['"use strict";', "{", *modules.values(), "}"])


def content_policy(style: str, script: str | None = None) -> str:
    """Return a policy that allows only this style and this script, by their hashes. Nothing else may be loaded."""
    scripts = "'none'" if script is None else f"'{_hash(script)}'"
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src {scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
