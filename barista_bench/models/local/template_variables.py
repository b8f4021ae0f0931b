"""What a chat template lets its user set, and by which of its variables it has a model reason or not.

Imports transformers, so it is itself imported only where a model is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from jinja2 import meta
from transformers import ProcessorMixin
from transformers.utils.chat_template_utils import _compile_jinja_template

from barista_bench.errors import ModelError
from barista_bench.models.reasoning import REASONING, Reasoning, switch_value

Template = str | Mapping[str, str]
"""A chat template, or several by name."""
_SWITCHES, _EFFORT = ("enable_thinking", "thinking"), "reasoning_effort"
# What is no variable of a template, though its name be given like one.
_TAKEN = frozenset(inspect.signature(ProcessorMixin.apply_chat_template).parameters) | {"messages"}


def chosen_variables(
    name: str, template: Template, given: Mapping[str, object], reasoning: Reasoning | None
) -> dict[str, object]:
    """The variables that a template is filled in with: those given, and the switches of reasoning.

    Args:
        name: of the model, for messages.

    Raises:
        ModelError: the template does not read one of those given, has no switch for `reasoning`, or would be told both.
        TemplateError: it is no template.
    """
    read = _variables(template) if given else frozenset()
    for variable in given:
        if variable in _TAKEN or variable not in read:  # it would go to the processor instead, or nowhere
            remedy = "leave it out of template_kwargs"
            raise ModelError(f"model {name}: its chat template reads no {variable!r}. Remedy: {remedy}")
    switches = reasoning_switches(template, reasoning) if reasoning else {}
    if reasoning and not switches:
        known = [wanted for wanted in REASONING if reasoning_switches(template, wanted)]
        what = f"its chat template has no switch for reasoning {reasoning}"
        remedy = f"say {', '.join(known)}" if known else "leave reasoning out"
        raise ModelError(f"model {name}: {what}. Remedy: {remedy}")
    if twice := sorted(switches.keys() & given.keys()):
        raise ModelError(f"model {name}: template_kwargs sets {twice}, as reasoning does. Remedy: leave one out")
    return {**given, **switches}


def reasoning_switches(template: Template, wanted: Reasoning) -> dict[str, bool | str]:
    """The variables by which a template has the model reason as wanted, with their values; empty where none can.

    Efforts are on as well. `reasoning_effort` turns reasoning off only where the template knows the word "none".
    """
    variables = _variables(template)
    switches: dict[str, bool | str] = {name: wanted != "off" for name in _SWITCHES if name in variables}
    effort = switch_value(_EFFORT, wanted) if _EFFORT in variables else None
    if wanted in ("off", "on"):
        knows_none = any(f"{quote}none{quote}" in str(template) for quote in "'\"")
        return switches or ({_EFFORT: effort} if effort is not None and knows_none else {})
    return {} if effort is None else {**switches, _EFFORT: effort}


def _variables(template: Template) -> frozenset[str]:
    """The variables that it reads without setting them itself."""
    texts = [template] if isinstance(template, str) else template.values()
    trees = (_compile_jinja_template(text).environment.parse(text) for text in texts)
    return frozenset(name for tree in trees for name in meta.find_undeclared_variables(tree))
