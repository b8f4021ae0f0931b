"""barista_bench: evaluation of vision-language models on egocentric video, from one scene graph.

Data takes these steps (docs/design.md). A release folder is read as a `SceneGraph`. Tasks derive frozen examples from
the graph. `datasets` configs hold the examples with lazily decoded frames. A runner asks a model and appends every
answer to a sample log. Metrics, results and reports are computed only from this log.

The Python API has `evaluate`, `diagnose`, `load_results`, `compare` and `load_metric`. After a call of `register`,
`load_dataset` knows linked frames and releases (see `barista_bench.api`).
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
    """Load the Python API on first use, so that importing the package stays light."""
    if name in __all__:
        from barista_bench import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
