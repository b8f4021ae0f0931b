"""Finds terms of annotations that are not in a project's vocabulary, and adds them to it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from barista_bench.annotate.decisions import Decisions
from barista_bench.annotate.records import LayerAttribute, LayerRelation, Layers
from barista_bench.errors import ConfigError
from barista_bench.files.writing import write_whole
from barista_bench.scene_graph.domain import Domain, load_domain


class Term(NamedTuple):
    """A value of an attribute or of a relation, with its type."""

    type: str
    value: str
    is_attribute: bool

    def __str__(self) -> str:
        return f"{'attributes.' if self.is_attribute else ''}{self.type}: {self.value}"


def unknown_terms(decisions: Decisions, domain: Domain) -> list[Term]:
    """Return the terms of attributes and relations that are not in the vocabulary; an export leaves these terms out."""
    of_keyframes = [
        LayerAttribute(object=attribute.object, type=attribute.type, value=attribute.value, ranges=[])
        for keyframe in decisions.keyframes
        for attribute in keyframe.attributes
    ]
    layers = decisions.layers or Layers()
    return within_vocabulary(msgspec.structs.replace(layers, attributes=[*layers.attributes, *of_keyframes]), domain)[1]


def within_vocabulary(layers: Layers, domain: Domain) -> tuple[Layers, list[Term]]:
    """Return the layers with only the vocabulary's terms, and the sorted terms that are not in the vocabulary."""

    def is_attribute(entry: LayerAttribute) -> bool:
        return domain.relation_of(entry.type, entry.value, entry.value) is not None

    def is_relation(entry: LayerRelation) -> bool:
        is_contact = entry.type == domain.contact_type and entry.value in domain.contacts
        return is_contact or (entry.type == domain.place_type and entry.value in domain.places)

    left_out = {Term(item.type, item.value, True) for item in layers.attributes if not is_attribute(item)}
    left_out |= {Term(item.type, item.value, False) for item in layers.relations if not is_relation(item)}
    attributes, relations = filter(is_attribute, layers.attributes), filter(is_relation, layers.relations)
    known_layers = msgspec.structs.replace(layers, attributes=list(attributes), relations=list(relations))
    return known_layers, sorted(left_out, key=str)


def add_names(path: Path, terms: Iterable[Term]) -> list[Term]:
    """Add values of known attribute types to a vocabulary file, as mutually exclusive values.

    All other content of the file, comments included, stays unchanged. Relations and new attribute types are not added:
    a relation needs further words, and a person must define a new type.

    Returns:
        The terms that were added.

    Raises:
        ConfigError: the file's attributes are not written as `dimensions:` followed by one line for each dimension.
    """
    values: dict[str, list[str]] = defaultdict(list)
    domain, text = load_domain(path), path.read_text(encoding="utf-8")
    added = [term for term in terms if term.is_attribute and term.type in domain.attributes]
    for term in added:
        values[term.type].append(term.value)
    for name, names in values.items():
        place = re.search(rf"(?m)^  {re.escape(name)}:\s*\n    dimensions:[^\S\n]*\n(?=( +)-)", text)
        if place is None:
            problem = f"attributes.{name}.dimensions is not a list with one line for each dimension"
            raise ConfigError(f"{path}: {problem}. Fix: add {', '.join(names)} to it by hand")
        line = yaml.safe_dump(names, default_flow_style=True, allow_unicode=True, width=10**6).strip()
        text = f"{text[: place.end()]}{place[1]}- {line}\n{text[place.end() :]}"
    if added:
        write_whole(path, text.encode())
    return added
