"""The report as one HTML page that needs nothing else: no network, no further file.

Texts of models and annotations are hostile. The template escapes them, the script gets them as JSON that holds no
markup and puts them into text nodes alone, and the page's policy runs no script but the one written here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from barista_bench.files import text_out
from barista_bench.reporting import pages
from barista_bench.reporting.pictures import Album
from barista_bench.reporting.samples import Sample
from barista_bench.reporting.view import Report

SCRIPTS = ("page", "tables", "charts", "leaderboard", "task", "gallery", "pictures", "answers", "sample", "main")
"""The page's modules in the order in which they are joined to one script: each uses those before it."""


def render_html(report: Report, samples: Sequence[Sample], album: Album, *, studio: bool = False) -> str:
    """The page; the album has the pictures of `samples` by their places. `studio`: that is what serves it."""
    style = own_template("report.css")
    script = "\n".join(['"use strict";', "{", *(own_template(f"{name}.js") for name in SCRIPTS), "}"])
    return (
        page_environment()
        .get_template("report.html.j2")
        .render(
            title=report.title,
            studio=studio,
            warnings=report.warnings,
            style=Markup(style),  # noqa: S704  (our own file)
            script=Markup(script),  # noqa: S704  (our own files)
            policy=content_policy(style, script),
            index=htmlsafe_json_dumps(pages.page_index(report, samples, album)),
            blocks=pages.blocks(report, samples, album),
            pictures=(base64.b64encode(file).decode() for file in album.files),
        )
    )


def page_environment() -> Environment:
    """Templates of pages: everything that they are given is escaped."""
    return Environment(
        loader=PackageLoader("barista_bench.reporting"),
        autoescape=True,
        finalize=text_out.html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def own_template(name: str) -> str:
    """A file of the folder `templates`."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8").strip()


def content_policy(style: str, script: str | None = None) -> str:
    """Nothing may load; only this style and this script apply, known by their hashes."""
    scripts = "'none'" if script is None else f"'{_hash(script)}'"
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src {scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
