"""barista_bench: evaluation of vision-language models on egocentric video, from one scene graph.

The way of the data (docs/design.md): a release folder is read as a `SceneGraph`, tasks derive frozen examples from
it, `datasets` configs hold them with lazily decoded frames, a runner asks a model and appends every answer to a
sample log, and metrics, results and reports are made from that log alone.

From Python: `evaluate`, `diagnose`, `load_results`, `compare` and `load_metric`; `register`, after which `load_dataset`
knows linked frames and releases (see `barista_bench.api`).
"""

from typing import TYPE_CHECKING

from barista_bench.version import __version__

if TYPE_CHECKING:
    from barista_bench.api import (
        Diagnoses,
        Evaluation,
        compare,
        diagnose,
        evaluate,
        load_metric,
        load_results,
        register,
    )

__all__ = ["Diagnoses", "Evaluation", "__version__", "compare", "diagnose", "evaluate", "load_metric", "load_results"]
__all__ += ["register"]


def __getattr__(name: str) -> object:
    """The Python API on first use: importing the package itself stays light."""
    if name in __all__:
        from barista_bench import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
