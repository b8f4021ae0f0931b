"""`summary.txt` of a released run folder, from `templates/summary.txt`: the figures of `metrics.json` for people.

The random best and worst answers that the release adds for referring are drawn without a seed: they are left out.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from barista_bench.interchange.released_folder import DIRECTORY, JsonObject

_MEAN = "mean_geval_"


def summary_text(task: str, metrics: JsonObject, directory: str, *, total_tokens: int) -> str:
    """The whole text, without a line end.

    Args:
        task: its name in the release.
        metrics: content of `metrics.json`.
        directory: the run's folder, as it is shown.
        total_tokens: sum of what the records say, shown where there is any usage.
    """
    texts = Environment(  # noqa: S701  (plain text: nothing is to be escaped)
        loader=PackageLoader(__package__), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    texts.filters |= {"share": _fraction, "duration": _duration}
    values = {"prefix": DIRECTORY, "directory": directory, "task": task, "m": metrics, "total_tokens": total_tokens}
    criteria = [key.removeprefix(_MEAN) for key in metrics if key.startswith(_MEAN) and key != f"{_MEAN}score"]
    return texts.get_template("summary.txt").render(values, criteria=criteria).rstrip("\n")


def _duration(milliseconds: float | None) -> str:
    """A time as the release shows it.

    >>> _duration(1234.0), _duration(11.6), _duration(None)
    ('1.23s', '12ms', 'N/A')
    """
    if milliseconds is None:
        return "N/A"
    return f"{milliseconds / 1000:.2f}s" if milliseconds >= 1000 else f"{milliseconds:.0f}ms"


def _fraction(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.4f}"
