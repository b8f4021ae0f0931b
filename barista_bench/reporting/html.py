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
from barista_bench.reporting import bundle
from barista_bench.reporting.figures import DrawnFigure
from barista_bench.reporting.pictures import Album
from barista_bench.reporting.samples import Sample
from barista_bench.reporting.tables import words
from barista_bench.reporting.view import Report


def render_html(report: Report, samples: Sequence[Sample], album: Album) -> str:
    """The page; the album has the pictures of `samples` by their places."""
    environment = page_environment()
    environment.filters["words"] = words
    environment.filters["svg_url"] = _svg_url
    style, script = own_template("report.css"), own_template("report.js")
    sections = [
        {"heading": section.heading, "labels": section.labels, "scores": section.scores} for section in report.sections
    ]
    return environment.get_template("report.html.j2").render(
        report=report,
        samples=samples,
        style=Markup(style),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        policy=content_policy(style, script),
        names=_short([section.heading for section in report.sections]),
        statuses=bundle.STATUSES,
        data=htmlsafe_json_dumps(bundle.index(samples, sections, album)),
        chunks=bundle.chunks(samples, album),
        pictures=[base64.b64encode(file).decode() for file in album.files],
        without_pictures=album.without_room(len(samples)),
    )


def _short(headings: Sequence[str]) -> list[str]:
    """Headings without what comes first in all of them, a benchmark's name.

    >>> _short(["pets / grounding", "pets / activity"])
    ['grounding', 'activity']
    """
    firsts = {heading.partition(" / ")[0] for heading in headings}
    return [heading.partition(" / ")[2] or heading for heading in headings] if len(firsts) == 1 else list(headings)


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


def _svg_url(figure: DrawnFigure) -> str:
    """As a picture an SVG runs no script, and the page's policy on styles does not reach into it."""
    return "data:image/svg+xml;base64," + base64.b64encode(figure.svg).decode()
