"""From generated tokens to an answer: where it ends, what was thought before it, its log-probabilities."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barista_bench.models.base import Completion, TokenLogprob
from barista_bench.models.reasoning import cut_at_stop, is_still_thinking, split_reasoning, thought_before

if TYPE_CHECKING:
    from transformers import GenerationConfig as DecodingConfig, PreTrainedTokenizerBase

    from barista_bench.models.local.decoding import TokenScores


_NEVER = -9000.0  # log-probabilities of what a schema does not allow: -infinity, or what vLLM's worker writes for it


@dataclass(frozen=True, slots=True)
class Generated:
    """One row as it was generated, padding behind its end included.

    Args:
        opened: the prompt had opened the thinking already.
        stopped: tokens up to and with a stop text; None where none was met.
        prompt_tokens: tokens of the prompt, without padding.
        rows: samples that were generated together; None where that means nothing.
        scores: log-probabilities, where they are wanted.
        held: the answer was held to a schema.
    """

    tokens: Sequence[int]
    opened: bool
    stopped: int | None
    prompt_tokens: int
    rows: int | None
    scores: TokenScores | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads the rows of one model.

    Args:
        end_ids: tokens that end an answer.
        hidden_ids: special tokens that are no text.
    """

    tokenizer: PreTrainedTokenizerBase
    tags: tuple[str, str]
    end_ids: frozenset[int]
    hidden_ids: frozenset[int]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, tags: tuple[str, str], generation: DecodingConfig) -> AnswerReader:
        """The reader of a checkpoint, by its tokenizer and its generation settings."""
        vocabulary = tokenizer.get_vocab()
        hidden = _special_ids(tokenizer) - {vocabulary[tag] for tag in tags if tag in vocabulary}
        return cls(tokenizer, tags, _end_ids(generation, tokenizer.eos_token_id), hidden)

    def read(self, row: Generated, stop: Sequence[str]) -> Completion:
        """The completion of one row; `stop` are the texts that end an answer.

        Thinking that never closed counts as cut off (`length`), whatever ended it: there is no answer.
        """
        ended = next((n for n, token in enumerate(row.tokens, start=1) if token in self.end_ids), None)
        lengths = [n for n in (ended, row.stopped) if n is not None]
        tokens = row.tokens[: min(lengths, default=len(row.tokens))]
        visible = [n for n, token in enumerate(tokens) if token not in self.hidden_ids | self.end_ids]
        text = self._decoded([tokens[n] for n in visible])
        with_tags = self.tags[0] + text if row.opened else text
        free, held = thought_before(with_tags, self.tags) if row.held else (with_tags, "")
        reasoning, uncut = split_reasoning(free, self.tags)
        uncut += held.strip()
        answer = cut_at_stop(uncut, stop)
        finished = (lengths or answer != uncut) and not is_still_thinking(free, self.tags)
        return Completion(
            text=answer,
            finish_reason="stop" if finished else "length",
            reasoning=reasoning,
            input_tokens=row.prompt_tokens,
            output_tokens=len(tokens),
            logprobs=None if row.scores is None else self._logprobs(row, row.scores, visible, text, answer),
            batch_size=row.rows,
        )

    def _logprobs(
        self, row: Generated, scores: TokenScores, steps: Sequence[int], text: str, answer: str
    ) -> tuple[TokenLogprob, ...]:
        """Of the tokens that wrote a character of the answer."""
        if not answer:
            return ()
        _, closed, after = text.rpartition(self.tags[1])
        start = len(text) - len(after.lstrip(None if closed else " "))
        if row.held:
            start = len(text) - len(thought_before(self.tags[0] + text if row.opened else text, self.tags)[1].lstrip())
        tokens = [row.tokens[step] for step in steps]
        counts = range(len(steps) + 1)

        def written(count: int) -> int:
            return len(self._decoded(tokens[:count]))

        first = bisect_right(counts, start, key=written) - 1
        last = bisect_left(counts, start + len(answer), key=written)
        return tuple(self._logprob(row.tokens[step], step, scores) for step in steps[first:last])

    def _logprob(self, token: int, step: int, scores: TokenScores) -> TokenLogprob:
        top = dict(zip(scores.ids[step], scores.values[step], strict=True)) | {token: scores.chosen[step]}
        return TokenLogprob(
            token=self._decoded([token]),
            logprob=scores.chosen[step],
            top=tuple(
                (self._decoded([key]), value)
                for key, value in sorted(top.items(), key=lambda item: -item[1])
                if value > _NEVER
            ),
        )

    def _decoded(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """All tokens that are no text. `all_special_ids` leaves out those without a role, such as `<|im_end|>` here."""
    added = (token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special)
    return frozenset(tokenizer.all_special_ids) | frozenset(added)


def _end_ids(generation: DecodingConfig, tokenizer_end: int | None) -> frozenset[int]:
    """The tokens that end an answer: the checkpoint's generation settings, else the tokenizer's."""
    declared = generation.eos_token_id
    if declared is None:
        return frozenset(() if tokenizer_end is None else (tokenizer_end,))
    return frozenset(declared if isinstance(declared, list) else [declared])
