"""Log settings, scores and coverage of runs to experiment trackers.

Prompts, answers, examples and server addresses are not logged. Each tracker's library is imported on use. The tracker
decides where its data go. trackio and TensorBoard write files. wandb uploads data unless WANDB_MODE forbids it.
"""

from __future__ import annotations

import io
import json
import logging
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Literal

from barista_bench.errors import ConfigError
from barista_bench.files.text_out import refuse_credentials, shared_name
from barista_bench.runs.score.results import Results, public_settings

log = logging.getLogger(__name__)

PROJECT = "barista_bench"
Tracker = Literal["trackio", "wandb", "tensorboard"]


def log_results(tracker: Tracker, results: Results, folder: Path) -> None:
    """Log a scored run as a new run of the tracker's project `barista_bench`.

    Args:
        tracker: name of a tracker whose library is installed.
        results: results of the run.
        folder: folder of the run. TensorBoard's event files go to its subfolder `tensorboard`.

    Raises:
        ConfigError: the tracker's library is not installed, or a setting looks like a key.
    """
    settings, metrics = logged_settings(results), logged_metrics(results)
    refuse_credentials(f"{folder}: its settings", settings)
    name = f"{shared_name(results.model.label)} {results.dataset.benchmark}/{results.dataset.task}"
    with redirect_stdout(greeting := io.StringIO()):  # a program may read stdout
        try:
            _log(tracker, name, settings, metrics, folder)
        except ImportError as error:
            packages = "tensorboard torch" if tracker == "tensorboard" else tracker
            raise ConfigError(f"{tracker} cannot be used ({error}). Fix: pip install {packages}") from error
    for line in greeting.getvalue().splitlines():
        log.info("%s: %s", tracker, line)


def _log(tracker: Tracker, name: str, settings: dict[str, Any], metrics: dict[str, float], folder: Path) -> None:
    if tracker == "trackio":
        import trackio

        trackio.init(project=PROJECT, name=name, config=settings, auto_log_cpu=False, auto_log_gpu=False)
        trackio.log(metrics)
        trackio.finish()
    elif tracker == "wandb":
        import wandb

        private = wandb.Settings(
            console="off",
            disable_code=True,
            disable_git=True,
            x_disable_meta=True,  # leaves out command line and paths
            x_disable_machine_info=True,
            x_save_requirements=False,
        )
        with wandb.init(project=PROJECT, name=name, config=settings, settings=private) as run:
            run.log(metrics)
    else:
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(folder / "tensorboard") as writer:
            writer.add_text("settings", json.dumps({"name": name, **settings}, sort_keys=True))
            for metric, value in metrics.items():
                writer.add_scalar(metric, value)


def logged_settings(results: Results) -> dict[str, Any]:
    """Return the settings of the scores: the comparability record, circumstances and versions.

    Only publishable settings of the model are included.
    """
    settings = public_settings(results.model.settings)
    shared = results.model_copy(update={"model": results.model.model_copy(update={"settings": settings})})
    options = {name: shared_name(v) if isinstance(v, str) else v for name, v in results.changed_options.items()}
    return {
        **results.comparability.model_dump(mode="json", exclude={"judge"}),
        "options": options,
        **shared.circumstances,
        "model": shared_name(results.model.label),
        "model revision": results.model.revision,
        "primary": results.primary,
        "versions": {**results.versions, "barista_bench": results.barista_bench},
    }


def logged_metrics(results: Results) -> dict[str, float]:
    """Return each mean by name, with `/low` and `/high` of its 95% interval and `/std`, and the coverage as
    `samples/`.
    """
    values = {name: metric.mean for name, metric in results.metrics.items()}
    for name, metric in results.metrics.items():
        beside = {"low": metric.low, "high": metric.high, "std": metric.std}
        values |= {f"{name}/{which}": value for which, value in beside.items() if value is not None}
    coverage = results.coverage.model_dump(include={"expected", "scored", "answered"})
    return values | {f"samples/{name}": float(count) for name, count in coverage.items()}
