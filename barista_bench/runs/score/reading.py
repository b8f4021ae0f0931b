"""Read a log again, with another box format or other think tags than at the start of the run.

Both settings only affect how an answer is read, so a wrong setting needs no second run. The setting at the start
defines the run's own reading. Only the run's own reading is submitted, since a reading chosen after the scores were
seen would be fitted to them.
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
"""Names of these settings among the options of `score`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How answers are read. `changes` maps each setting that differs from the run's own to its value."""

    box_format: BoxFormat
    think_tags: tuple[str, str] | None
    changes: Mapping[str, str]

    def read(self, record: SampleRecord) -> SampleRecord:
        """Return the record with its thoughts split off by `think_tags`. Without think tags the record is unchanged.

        If an answer consists only of thoughts, the thoughts are read as the answer.
        """
        source = record.text if record.text and record.text.strip() else record.reasoning
        if self.think_tags is None or not source:
            return record
        reasoning, text = split_reasoning(source, self.think_tags)
        if source is record.text:
            reasoning = "\n".join(filter(None, (record.reasoning, reasoning))) or None
        return msgspec.structs.replace(record, text=text, reasoning=reasoning)

    def info(self, model: ModelInfo) -> ModelInfo:
        """Return the description of the model with the box format of this reading."""
        own = BoxFormatInfo(order=self.box_format.order, scale=self.box_format.scale)
        return model.model_copy(update={"box_format": own})


def split_options(options: Mapping[str, object], model: ModelInfo) -> tuple[Reading, dict[str, object]]:
    """Split the options of `score` into the reading and the options of the task.

    Raises:
        ConfigError: a value is not a box format or a pair of tags.
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
