"""The settings of a preflight, and the record of models that this machine has asked before."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub.constants import HF_HOME

from barista_bench.core.model_names import BASELINES, SCRIPTED
from barista_bench.files.writing import write_whole
from barista_bench.runs.ask.catalog import kind_of, without_ablations
from barista_bench.runs.ask.config import ModelSettings, SpendingSettings
from barista_bench.runs.log.inputs import digest


class PreflightConfig(SpendingSettings, ModelSettings):
    """A model and its settings, as for `run`."""


def is_new_kind(name: str) -> bool:
    """Return whether a name means a real model that writes text, not a baseline or a file of answers."""
    kind = kind_of(name)
    return kind.writes_text if kind else without_ablations(name) not in SCRIPTED


def _seen_file(config: ModelSettings) -> Path:
    name = digest(config.model, config.base_url, config.revision, config.adapter)[:16]
    return Path(HF_HOME) / "barista_bench" / "seen" / name


def is_seen(config: ModelSettings) -> bool:
    """Return whether this machine has asked the model before, in a preflight or a run. Baselines need no preflight."""
    is_baseline = config.model.rpartition(":")[2] in BASELINES
    return is_baseline or not is_new_kind(config.model) or _seen_file(config).exists()


def mark_seen(config: ModelSettings) -> None:
    """Record that the model has been asked. If the folder cannot be written, the offer is only repeated."""
    if is_new_kind(config.model):
        try:
            _seen_file(config).parent.mkdir(parents=True, exist_ok=True)
            write_whole(_seen_file(config), json.dumps({"model": config.model}) + "\n")
        except OSError:
            return
