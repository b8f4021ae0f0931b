"""From generated tokens to a completion: where the answer ends, what was only thought, and how likely it was."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barista_bench.models.base import Completion, TokenLogprob
from barista_bench.models.reasoning import is_still_thinking, split_reasoning

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from barista_bench.models.local.sampling import TokenScores


@dataclass(frozen=True, slots=True)
class Generated:
    """One row as it was generated, padding behind its end included.

    Args:
        tokens: generated tokens.
        opened: the prompt had opened the thinking already.
        stopped: tokens up to and with a stop text; None where none was met.
        prompt_tokens: tokens of the prompt, without padding.
        rows: samples that were generated together.
        scores: log-probabilities, where they are wanted.
    """

    tokens: Sequence[int]
    opened: bool
    stopped: int | None
    prompt_tokens: int
    rows: int
    scores: TokenScores | None = None


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads the rows of one model.

    Args:
        tokenizer: decodes the tokens.
        tags: opening and closing tag of the reasoning.
        end_ids: tokens that end an answer.
        hidden_ids: special tokens that are no text.
    """

    tokenizer: PreTrainedTokenizerBase
    tags: tuple[str, str]
    end_ids: frozenset[int]
    hidden_ids: frozenset[int]

    def read(self, row: Generated, stop: Sequence[str]) -> Completion:
        """The completion of one row; `stop` are the texts that end an answer.

        Thinking that never closed counts as cut off (`length`), whatever ended it: there is no answer.
        """
        ended = next((n for n, token in enumerate(row.tokens, start=1) if token in self.end_ids), None)
        ends = [n for n in (ended, row.stopped) if n is not None]
        tokens = row.tokens[: min(ends, default=len(row.tokens))]
        places = [n for n, token in enumerate(tokens) if token not in self.hidden_ids and token not in self.end_ids]
        text = self._decoded([tokens[n] for n in places])
        whole = self.tags[0] + text if row.opened else text
        reasoning, answer = split_reasoning(whole, self.tags)
        cut = min((at for at in map(answer.find, stop) if at >= 0), default=len(answer))
        finished = (ends or cut < len(answer)) and not is_still_thinking(whole, self.tags)
        answer = answer[:cut]
        return Completion(
            text=answer,
            finish_reason="stop" if finished else "length",
            reasoning=reasoning,
            input_tokens=row.prompt_tokens,
            output_tokens=len(tokens),
            logprobs=None if row.scores is None else self._logprobs(row, row.scores, places, text, answer),
            batch_size=row.rows,
        )

    def _logprobs(
        self, row: Generated, scores: TokenScores, places: Sequence[int], text: str, answer: str
    ) -> tuple[TokenLogprob, ...]:
        """Of the tokens that wrote a character of the answer."""
        if not answer:
            return ()
        _, closed, after = text.rpartition(self.tags[1])
        start = len(text) - len(after) + (len(after) - len(after.lstrip()) if closed else 0)
        visible = [row.tokens[n] for n in places]
        counts = range(len(places) + 1)

        def written(count: int) -> int:
            return len(self._decoded(visible[:count]))

        first = bisect_right(counts, start, key=written) - 1
        last = bisect_left(counts, start + len(answer), key=written)
        return tuple(self._logprob(row.tokens[n], n, scores) for n in places[first:last])

    def _logprob(self, token: int, step: int, scores: TokenScores) -> TokenLogprob:
        top = dict(zip(scores.ids[step], scores.values[step], strict=True)) | {token: scores.chosen[step]}
        return TokenLogprob(
            token=self._decoded([token]),
            logprob=scores.chosen[step],
            top=tuple((self._decoded([one]), value) for one, value in sorted(top.items(), key=lambda item: -item[1])),
        )

    def _decoded(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))
