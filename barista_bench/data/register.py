"""`load_dataset("barista", name, source=...)` in one process, straight from a release, with nothing prepared before.

`datasets` has no plug-in point for this (it reads no entry points and runs no scripts since 4.0), so its private
`dataset_module_factory` is wrapped. It is opt-in for that reason; a test watches for changes in `datasets`.
"""

from __future__ import annotations

import datasets.inspect
import datasets.load

from barista_bench import __version__
from barista_bench.benchmarks import BENCHMARKS
from barista_bench.data.builder import BenchmarkConfig
from barista_bench.data.origin import config_names_of
from barista_bench.errors import ConfigError

_MODULES = (datasets.load, datasets.inspect)
_original = datasets.load.dataset_module_factory


def register() -> None:
    """Make the benchmarks' names known to `datasets.load_dataset` in this process; `unregister` undoes it.

    Afterwards `load_dataset("barista", "relations", source="/data/BARISTA", frames="linked")` works from any folder,
    and so does `load_dataset("vista", "all", source=ANNOTATIONS, videos=VIDEOS)`.
    Keyword arguments are those of `BenchmarkConfig`. `source` is needed: entries that `build` made are not looked
    for. Prepared ones are kept in the `datasets` cache under the settings, the version of this package and the state of
    the release (names, sizes and modification times of its files), so that a changed release is prepared anew.

    Raises:
        ConfigError: this version of `datasets` has no place to hook in.
    """
    for module in _MODULES:
        if not hasattr(module, "dataset_module_factory"):
            raise ConfigError(
                f"datasets {datasets.__version__}: {module.__name__} has no dataset_module_factory. "
                "Remedy: use `barista-bench build` and its folder"
            )
        module.dataset_module_factory = _factory


def unregister() -> None:
    """Give `datasets` its own function back."""
    for module in _MODULES:
        module.dataset_module_factory = _original


def _factory(path: str, *args: object, **kwargs: object) -> object:
    if path not in BENCHMARKS:
        return _original(path, *args, **kwargs)
    configs = [BenchmarkConfig(name=name) for name in config_names_of(path)]
    return datasets.load.DatasetModule(
        "barista_bench.data.builder",
        __version__,
        {"dataset_name": path, "base_path": None},
        builder_configs_parameters=datasets.load.BuilderConfigsParameters(builder_configs=configs),
    )
