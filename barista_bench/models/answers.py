"""Separates the answer in a model's output from its thoughts, which are saved for people and never scored.

`AnswerReader` reads generated tokens. It finds the end of the answer, the thoughts before it, and its
log-probabilities.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, get_args

from barista_bench.models.base import Completion, TokenLogprob

if TYPE_CHECKING:
    from transformers import GenerationConfig as DecodingConfig, PreTrainedTokenizerBase

Reasoning = Literal["off", "on", "low", "medium", "high"]
REASONING: Final[tuple[Reasoning, ...]] = get_args(Reasoning)
_ON_OR_OFF = frozenset({"enable_thinking", "thinking", "enabled"})

THINK_TAGS = ("<think>", "</think>")
"""The tags that most models put around their reasoning."""
OTHER_TAGS = (
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),  # EXAONE Deep, Gemini's endpoint
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<seed:think>", "</seed:think>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),  # Kimi-VL
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel>", "<channel|>"),  # Gemma 4
    ("<unused94>", "<unused95>"),  # MedGemma
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),  # gpt-oss
)
"""Tags of other models; `tags_in` uses them."""


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Natural log-probabilities of one row.

    Each step has an entry for the chosen token and one for the likeliest tokens.
    """

    chosen: list[float]
    ids: list[list[int]]
    values: list[list[float]]


def switch_value(switch: str, reasoning: Reasoning) -> bool | str | None:
    """Return the value of the switch that gives this reasoning; None if the switch has no such value.

    Some switches are true or false. All others take the name of an effort, or "none" for off.

    >>> switch_value("enable_thinking", "off"), switch_value("reasoning_effort", "off")
    (False, 'none')
    >>> switch_value("enable_thinking", "high"), switch_value("reasoning_effort", "on")
    (None, None)
    """
    is_plain = reasoning in ("off", "on")
    if switch in _ON_OR_OFF:
        return reasoning == "on" if is_plain else None
    return {"off": "none", "on": None}[reasoning] if is_plain else reasoning


def tags_in(text: str, *, is_cut: bool = False) -> tuple[str, str]:
    """Return the tags around the thoughts of a complete generated text, for a model with unknown tags.

    `THINK_TAGS` count anywhere in the text. Other tags count only if they are unambiguous: the text begins with the
    opening tag, or has only the closing tag (the prompt had opened the thinking), and an answer follows. If no answer
    follows, the other tags count only when the text was cut off within the thoughts.

    >>> tags_in("[THINK]The cup is left.[/THINK]left"), tags_in("left")
    (('[THINK]', '[/THINK]'), ('<think>', '</think>'))
    >>> tags_in("<thinking>left</thinking>"), tags_in("<thinking>The cup", is_cut=True)
    (('<think>', '</think>'), ('<thinking>', '</thinking>'))
    """
    start = text.lstrip()
    has_think_tags = any(tag in text for tag in THINK_TAGS)
    for tags in OTHER_TAGS:
        opening, closing = tags
        _, closed, answer = text.rpartition(closing)
        begins, is_alone = start.startswith(opening), opening not in text and not has_think_tags
        is_answered = bool(closed) and bool(answer.strip()) and opening not in answer
        if (is_answered and (begins or is_alone)) or (begins and is_cut):
            return tags
    return THINK_TAGS


def split_reasoning(text: str, tags: tuple[str, str] = THINK_TAGS) -> tuple[str | None, str]:
    """Split the complete generated text into (reasoning, answer); reasoning is None if it is missing.

    If a tag opens and never closes, the budget ran out during thinking: everything is reasoning, and there is no
    answer. A closing tag without an opening tag means that the prompt had opened the thinking. If the thinking was
    closed, the answer follows the last closing tag, so that no thought can pass for an answer. Spaces before an answer
    are dropped, because decoders differ: for the same token, vLLM writes a space and transformers does not.

    >>> split_reasoning("<think>The cup is left of the jug.</think>left")
    ('The cup is left of the jug.', 'left')
    >>> split_reasoning("The template opened the thinking.</think>yes")
    ('The template opened the thinking.', 'yes')
    >>> split_reasoning("<think>the cup, or perhaps the ju")
    ('the cup, or perhaps the ju', '')
    >>> split_reasoning(" no thoughts")
    (None, 'no thoughts')
    """
    opening, closing = tags
    thought, closed, answer = text.rpartition(closing)
    if opening in answer:  # the tag never closed: the text before it is not an answer either
        thought, answer = text, ""
    elif not closed:
        return None, text.lstrip(" ")
    return thought.replace(opening, "").replace(closing, "").strip(), answer.strip()


def thought_before(text: str, tags: tuple[str, str] = THINK_TAGS) -> tuple[str, str]:
    """Split off the thought that may precede an answer with a schema; tags inside the answer are ordinary text.

    >>> thought_before('<think>Left?</think>["</think>"]')
    ('<think>Left?</think>', '["</think>"]')
    >>> thought_before('["<think>"]'), thought_before("<think>Left")
    (('', '["<think>"]'), ('<think>Left', ''))
    """
    opening, closing = tags
    if not text.startswith(opening):
        return "", text
    thought, closed, answer = text.partition(closing)
    return thought + closed, answer


def is_still_thinking(text: str, tags: tuple[str, str] = THINK_TAGS) -> bool:
    """Return True if the text ends within reasoning that was never closed, whatever the reason.

    Pass the complete text, with the opening tag even if the prompt contains it.

    >>> is_still_thinking("<think>the cup, or perhaps the ju")
    True
    >>> is_still_thinking("<think>The cup.</think>left"), is_still_thinking("left")
    (False, False)
    """
    opening, closing = tags
    return opening in text.rpartition(closing)[2]


def cut_at_stop(answer: str, stop: Sequence[str]) -> str:
    """Return the part of the answer before the first stop text.

    >>> cut_at_stop("left END right", ["STOP", "END"])
    'left '
    """
    return answer[: min((index for index in map(answer.find, stop) if index >= 0), default=len(answer))]


# Log-probability of tokens that a schema excludes: -infinity, or the number that vLLM's worker writes instead.
_NEVER = -9000.0


@dataclass(frozen=True, slots=True)
class GeneratedRow:
    """One generated row, including the padding after its end.

    Args:
        opens_thinking: the prompt had already opened the thinking.
        stop_length: number of tokens up to the end of a stop text; None without a stop text.
        prompt_tokens: number of tokens in the prompt, without padding.
        cached: number of prompt tokens that were already computed; None if unknown.
        rows: number of samples that were generated together; None if the engine has no batches.
        scores: log-probabilities, if requested.
        is_held: the answer follows a schema.
    """

    tokens: Sequence[int]
    opens_thinking: bool
    stop_length: int | None
    prompt_tokens: int
    cached: int | None
    rows: int | None
    scores: TokenScores | None = None
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads the rows of one model.

    Args:
        tags: the tags around the model's thoughts. If they are `THINK_TAGS`, tags of other models are recognised too
            (`tags_in`).
        end_ids: tokens that end an answer.
        hidden_ids: special tokens that are not text.
    """

    tokenizer: PreTrainedTokenizerBase
    tags: tuple[str, str]
    end_ids: frozenset[int]
    hidden_ids: frozenset[int]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, tags: tuple[str, str], generation: DecodingConfig) -> AnswerReader:
        """Return the reader for a checkpoint, from the checkpoint's tokenizer and generation settings."""
        vocabulary, declared = tokenizer.get_vocab(), generation.eos_token_id
        # `all_special_ids` leaves out special tokens without a role, such as `<|im_end|>` here.
        special = {token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special}
        all_tags = " ".join(chain(tags, *OTHER_TAGS))  # a tag may consist of several special tokens
        hidden = special.union(tokenizer.all_special_ids)
        hidden -= {token_id for token, token_id in vocabulary.items() if token_id in hidden and token in all_tags}
        ends = tokenizer.eos_token_id if declared is None else declared
        end_ids = ends if isinstance(ends, list) else [] if ends is None else [ends]
        return cls(tokenizer, tags, frozenset(end_ids), frozenset(hidden))

    def read(self, row: GeneratedRow, stop: Sequence[str]) -> Completion:
        """Return the completion of one row; an answer ends at the first of the texts in `stop`.

        Thinking that was never closed always counts as cut off (`thinking`), because there is no answer.
        """
        end = next((n for n, token in enumerate(row.tokens, start=1) if token in self.end_ids), None)
        lengths = [n for n in (end, row.stop_length) if n is not None]
        tokens = row.tokens[: min(lengths, default=len(row.tokens))]
        visible = [n for n, token in enumerate(tokens) if token not in self.hidden_ids | self.end_ids]
        text = self._decode([tokens[n] for n in visible])
        has_other_tags = self.tags == THINK_TAGS and not row.opens_thinking and not row.is_held
        reader = replace(self, tags=tags_in(text, is_cut=not lengths)) if has_other_tags else self
        return reader._completion(row, stop, tokens, visible, text, has_ended=bool(lengths))

    def _completion(
        self,
        row: GeneratedRow,
        stop: Sequence[str],
        tokens: Sequence[int],
        visible: Sequence[int],
        text: str,
        *,
        has_ended: bool,
    ) -> Completion:
        """Return the completion from the first tokens of a row; the tokens at the steps `visible` spell `text`."""
        tagged_text = self.tags[0] + text if row.opens_thinking else text
        free_text, held_answer = thought_before(tagged_text, self.tags) if row.is_held else (tagged_text, "")
        reasoning, uncut = split_reasoning(free_text, self.tags)
        uncut += held_answer.strip()
        answer = cut_at_stop(uncut, stop)
        is_cut_off = is_still_thinking(free_text, self.tags)
        is_finished = has_ended or answer != uncut
        thinking_tokens = len(tokens)
        if not is_cut_off:
            thinking_tokens = self._thinking_tokens(row, visible, text.removesuffix(held_answer))
        return Completion(
            text=answer,
            finish_reason="thinking" if is_cut_off else "stop" if is_finished else "length",
            reasoning=reasoning,
            input_tokens=row.prompt_tokens,
            output_tokens=len(tokens),
            thinking_tokens=thinking_tokens,
            cached_tokens=row.cached,
            logprobs=None if row.scores is None else self._logprobs(row, row.scores, visible, text, answer),
            batch_size=row.rows,
        )

    def _thinking_tokens(self, row: GeneratedRow, steps: Sequence[int], text: str) -> int:
        """Count the generated tokens up to the end of the last closing tag."""
        before, closed, _ = text.rpartition(self.tags[1])
        if not closed:
            return 0
        written = self._characters_by_step(row, steps)
        last = bisect_left(range(len(steps) + 1), len(before + closed), key=written)
        return steps[last - 1] + 1

    def _characters_by_step(self, row: GeneratedRow, steps: Sequence[int]) -> Callable[[int], int]:
        """Return a function that gives the number of characters written by the first n of these steps."""
        tokens = [row.tokens[step] for step in steps]
        return lambda count: len(self._decode(tokens[:count]))

    def _logprobs(
        self, row: GeneratedRow, scores: TokenScores, steps: Sequence[int], text: str, answer: str
    ) -> tuple[TokenLogprob, ...]:
        """Return the log-probabilities of the tokens that wrote at least one character of the answer."""
        if not answer:
            return ()
        _, closed, after = text.rpartition(self.tags[1])
        start = len(text) - len(after.lstrip(None if closed else " "))
        if row.is_held:
            tagged_text = self.tags[0] + text if row.opens_thinking else text
            start = len(text) - len(thought_before(tagged_text, self.tags)[1].lstrip())
        counts, written = range(len(steps) + 1), self._characters_by_step(row, steps)
        first = bisect_right(counts, start, key=written) - 1
        last = bisect_left(counts, start + len(answer), key=written)
        return tuple(self._logprob(row.tokens[step], step, scores) for step in steps[first:last])

    def _logprob(self, token: int, step: int, scores: TokenScores) -> TokenLogprob:
        top = dict(zip(scores.ids[step], scores.values[step], strict=True)) | {token: scores.chosen[step]}
        return TokenLogprob(
            token=self._decode([token]),
            logprob=scores.chosen[step],
            top=tuple(
                (self._decode([key]), value)
                for key, value in sorted(top.items(), key=lambda item: -item[1])
                if value > _NEVER
            ),
        )

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))
