"""Data that lie beside a benchmark's modules: vocabularies, and the rules on which its release and its paper differ."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from barista_bench.core.task import ProtocolRule
from barista_bench.files.yaml_files import load_yaml


def packaged_data(package: str, name: str) -> object:
    """The content of a YAML file of a package; every scalar is text."""
    data = resources.files(package).joinpath(name).read_bytes()
    return load_yaml(data, name, text_only=True)


@cache
def _all_rules(package: str) -> dict[str, tuple[ProtocolRule, ...]]:
    return msgspec.convert(packaged_data(package, "protocols.yaml"), dict[str, tuple[ProtocolRule, ...]])


def rules_of(package: str, task: str) -> tuple[ProtocolRule, ...]:
    """Where the paper and its released code differ on a task: the package's `protocols.yaml`."""
    return _all_rules(package)[task]
