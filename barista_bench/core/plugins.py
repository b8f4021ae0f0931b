"""Load additions from other packages through entry points: `barista_bench.<group>`, in setup.cfg or pyproject.toml.

| group | an entry is |
|---|---|
| benchmarks | a `Benchmark`: its tasks appear in every command and page |
| models | a `ModelKind`: `run --model NAME:REST` asks it |
| propagators, segmenters, detectors | a function of REST in a value `NAME:REST` of project.json |
| graph_sources | a `GraphSource` of `barista_bench.other_graphs.source`: `import-graph --from NAME` |
| metrics | a module of `evaluate`, which `barista_bench.load_metric(NAME)` returns |

The package registers its own additions in the same way (docs/plugins.md).
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, TypeAlias

from barista_bench.errors import ConfigError

Group: TypeAlias = Literal["benchmarks", "models", "propagators", "segmenters", "detectors", "graph_sources", "metrics"]


@cache
def plugin_entries(group: Group) -> dict[str, EntryPoint]:
    """Return the entries of a group, by name, sorted by name; nothing is imported.

    Raises ConfigError if two packages register the same name.
    """
    entries: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=f"barista_bench.{group}"), key=lambda entry: entry.name):
        first = entries.setdefault(entry.name, entry)
        if first.value != entry.value:  # the same package may be on the path twice
            raise ConfigError(
                f"{group}: {entry.name!r} is registered twice, as {first.value} and {entry.value}. "
                "Fix: uninstall one of the two packages"
            )
    return entries


def load_plugin(group: Group, name: str) -> object:
    """Return the object registered under a name. Raises ConfigError if there is no object or it cannot be imported."""
    entry = plugin_entries(group).get(name)
    if entry is None:
        choices = ", ".join(plugin_entries(group)) or "none: install this package with pip"
        raise ConfigError(f"{group}: no {name!r}. Fix: use one of {choices}")
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        package = entry.dist.name if entry.dist else "its package"
        raise ConfigError(
            f"{group}: {name!r} cannot be loaded from {entry.value} ({error}). Fix: correct or uninstall {package}"
        ) from error
