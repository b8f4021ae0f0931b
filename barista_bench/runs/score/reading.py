"""Read a log again: by another box format, or other think tags, than the run was started with.

Both are ways to read an answer, so a wrong setting needs no second run. The reading that the run was started with stays
the run's own, and the only one that is submitted: a reading chosen after the scores were seen fits them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from barista_bench.core.boxes import BoxFormat
from barista_bench.errors import ConfigError
from barista_bench.models.answers import split_reasoning
from barista_bench.runs.described import BoxFormatInfo, ModelInfo
from barista_bench.runs.log.sample_log import SampleRecord

READINGS: Final = ("box_format", "think_tags")
"""Names of the choices; they stand among the options of `score`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How answers are read. `changes` names the choices that differ from the run's own: name to value."""

    box_format: BoxFormat
    think_tags: tuple[str, str] | None
    changes: Mapping[str, str]

    def read(self, record: SampleRecord) -> SampleRecord:
        """Return the record with its thoughts split off by `think_tags`; unchanged without them.

        If all text of an answer is in its thoughts, the thoughts are read.
        """
        source = record.text if record.text and record.text.strip() else record.reasoning
        if self.think_tags is None or not source:
            return record
        reasoning, text = split_reasoning(source, self.think_tags)
        if source is record.text:
            reasoning = "\n".join(filter(None, (record.reasoning, reasoning))) or None
        return msgspec.structs.replace(record, text=text, reasoning=reasoning)

    def info(self, model: ModelInfo) -> ModelInfo:
        """Return the model's description with the box format of this reading."""
        own = BoxFormatInfo(order=self.box_format.order, scale=self.box_format.scale)
        return model.model_copy(update={"box_format": own})


def split_options(options: Mapping[str, object], model: ModelInfo) -> tuple[Reading, dict[str, object]]:
    """Return the reading that some options of `score` name, and the options of the task.

    Raises:
        ConfigError: a value is not a box format, or not two tags.
    """
    box_format, tags, changes = model.box_format.format, None, dict[str, str]()
    if (text := options.get("box_format")) is not None:
        try:
            box_format = BoxFormat.parse(str(text))
        except ValueError as error:
            raise ConfigError(f"{error}. Fix: say e.g. --box-format yxyx/1000") from error
        if box_format != model.box_format.format:
            changes["box_format"] = str(box_format)
    if (text := options.get("think_tags")) is not None:
        opening, _, closing = str(text).partition(",")
        tags = opening.strip(), closing.strip()
        if not all(tags):
            raise ConfigError(f"think_tags are {str(text)!r:.80}. Fix: say e.g. --think-tags '[THINK],[/THINK]'")
        if " ".join(tags) == model.settings.get("think_tags"):
            tags = None
        else:
            changes["think_tags"] = ",".join(tags)
    return Reading(box_format, tags, changes), {name: value for name, value in options.items() if name not in READINGS}
