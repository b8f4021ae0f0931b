"""The report as one HTML page that needs nothing else: no network, no further file.

Texts of models and annotations are hostile. The template escapes them, the script gets them as JSON that holds no
markup and puts them into text nodes alone, and the page's policy runs no script but the one written here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from barista_bench.reporting.pictures import Pictures
from barista_bench.reporting.samples import Sample
from barista_bench.reporting.tables import words
from barista_bench.reporting.view import Report
from barista_bench.task import Status

NO_ROOM = "No pictures for this sample: the report has reached its size limit."


def render_html(report: Report, pictures: Sequence[Pictures | None]) -> str:
    """The page; `pictures` in the order of `report.samples`, None for samples that had no room."""
    environment = Environment(
        loader=PackageLoader("barista_bench.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["words"] = words
    style, script = _own("report.css"), _own("report.js")
    return environment.get_template("report.html.j2").render(
        report=report,
        style=Markup(style),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        policy=_policy(style, script),
        statuses=[str(status) for status in Status],
        data=htmlsafe_json_dumps(_data(report, pictures)),
        pictures=[htmlsafe_json_dumps(_urls(found)) for found in pictures],
        without_pictures=sum(found is None for found in pictures),
    )


def _own(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8").strip()


def _policy(style: str, script: str) -> str:
    """Nothing may load; only this style and this script apply, known by their hashes."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(report: Report, pictures: Sequence[Pictures | None]) -> dict[str, Any]:
    return {
        "sections": [
            {"heading": section.heading, "labels": section.labels, "scores": section.scores}
            for section in report.sections
        ],
        "samples": [_sample(sample, found) for sample, found in zip(report.samples, pictures, strict=True)],
    }


def _sample(sample: Sample, pictures: Pictures | None) -> dict[str, Any]:
    return {**asdict(sample), "problem": NO_ROOM if pictures is None else pictures.problem}


def _urls(pictures: Pictures | None) -> list[str]:
    files = pictures.files if pictures else ()
    return ["data:image/jpeg;base64," + base64.b64encode(file).decode() for file in files]
