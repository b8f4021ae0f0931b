"""What ends an answer, or the thinking before it, while tokens are generated.

Imports torch and transformers, so it is itself imported only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from transformers import LogitsProcessor, StoppingCriteria

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SPARE_TOKENS = 4  # a token writes a byte or more, except one that starts within a character


class Thoughts:
    """Follows, row by row, whether a model is thinking. Only generated tokens are read, each of them once.

    Tags are looked for in the text, since they are one token in some vocabularies and several in others.

    Args:
        tokenizer: decodes the tokens.
        tags: opening and closing tag.
        prompt_length: columns of the padded prompt.
        opened: for each row, whether the prompt has opened the thinking already.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        tags: tuple[str, str],
        prompt_length: int,
        opened: Sequence[bool],
    ) -> None:
        self.thinking = list(opened)
        self.spent = [0] * len(self.thinking)
        """Tokens of reasoning, for each row."""
        self.answers_from: list[int] = [0] * len(self.thinking)
        """Generated tokens before the present stretch of thinking or answering, for each row."""
        self._tokenizer, self._tags, self._prompt_length = tokenizer, tags, prompt_length
        self._tail = max(len(tag.encode()) for tag in tags) + _SPARE_TOKENS
        self._read = prompt_length

    def read(self, input_ids: torch.Tensor) -> None:
        """Take note of the tokens that are new; `input_ids` of shape (rows, prompt and generated tokens)."""
        if input_ids.shape[1] == self._read:
            return
        generated = input_ids[:, self._prompt_length :].tolist()
        for end in range(self._read - self._prompt_length + 1, len(generated[0]) + 1):
            for row, tokens in enumerate(generated):
                self._take(row, tokens, end)
        self._read = input_ids.shape[1]

    def has_thought(self, row: int) -> bool:
        """Whether the present stretch of answering follows on thinking."""
        return not self.thinking[row] and self.answers_from[row] > 0

    def _take(self, row: int, tokens: list[int], end: int) -> None:
        thinking = self.thinking[row]
        self.spent[row] += thinking
        tail = tokens[max(self.answers_from[row], end - self._tail) : end]
        text = self._tokenizer.decode(tail, clean_up_tokenization_spaces=False)
        if self._tags[thinking] in text:
            self.thinking[row], self.answers_from[row] = not thinking, end


class ThinkingBudget(LogitsProcessor):
    """Close a row's thinking once it has taken so many tokens, by forcing the tokens of the closing tag.

    It has to come last, after whatever chooses among the scores.

    Args:
        thoughts: of the same rows.
        budget: tokens of reasoning, 0 or more; the tag does not count.
        closing: the tokens that close the thinking, one or more.
    """

    def __init__(self, thoughts: Thoughts, budget: int, closing: Sequence[int]) -> None:
        self._thoughts, self._budget, self._closing = thoughts, budget, tuple(closing)
        self._forced = [0] * len(thoughts.thinking)  # tokens of the closing tag that are still to be written

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Scores of shape (rows, vocabulary); where the tag is forced, all but its next token are masked."""
        self._thoughts.read(input_ids)
        for row, thinking in enumerate(self._thoughts.thinking):
            if self._forced[row] == 0 and thinking and self._thoughts.spent[row] >= self._budget:
                self._forced[row] = len(self._closing)
            if self._forced[row]:
                scores[row] = -torch.inf
                scores[row, self._closing[-self._forced[row]]] = 0.0
                self._forced[row] -= 1
        return scores


class StopTexts(StoppingCriteria):
    """Stop a row when its answer holds a stop text, and remember after how many generated tokens.

    Prompt and reasoning are not searched: a stop text ends the answer, and a prompt that ends like one stops
    nothing. Special tokens count as text here: `<|im_end|>` may be a stop text.

    Args:
        tokenizer: decodes the tokens.
        texts: the stop texts, none of them empty.
        prompt_length: columns of the padded prompt.
        thoughts: of the same rows.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], prompt_length: int, thoughts: Thoughts
    ) -> None:
        self.lengths: list[int | None] = [None] * len(thoughts.thinking)
        self._tokenizer, self._texts, self._prompt_length = tokenizer, tuple(texts), prompt_length
        self._thoughts = thoughts
        self._tail = max((len(text.encode()) for text in texts), default=0) + _SPARE_TOKENS

    def __call__(self, input_ids: torch.LongTensor, scores: object, **_: object) -> torch.BoolTensor:
        """Shape (rows,): true for each row that has met a stop text."""
        if self._texts:
            self._thoughts.read(input_ids)
            generated = input_ids[:, self._prompt_length :].tolist()
            for row, tokens in enumerate(generated):
                if self.lengths[row] is None and self._stops(row, tokens):
                    self.lengths[row] = len(tokens)
        met = torch.tensor([length is not None for length in self.lengths], device=input_ids.device)
        return cast("torch.BoolTensor", met)

    def _stops(self, row: int, tokens: list[int]) -> bool:
        if self._thoughts.thinking[row]:
            return False
        start = self._thoughts.answers_from[row]
        tail = tokens[max(start, len(tokens) - self._tail) :]
        text = str(self._tokenizer.decode(tail, clean_up_tokenization_spaces=False))
        if self._thoughts.has_thought(row) and len(tail) == len(tokens) - start:
            text = text.lstrip()  # the space between a thought and its answer is no part of the answer
        return any(stop in text for stop in self._texts)
