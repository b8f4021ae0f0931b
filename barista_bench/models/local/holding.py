"""Constrains the answers of a local model to JSON Schemas, one schema per row, by masking the next tokens.

This module imports torch, transformers and llguidance, so import it only when answers are constrained.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from llguidance import LLExecutor, LLMatcher
from llguidance.hf import from_tokenizer
from transformers import LogitsProcessor

from barista_bench.errors import ModelError
from barista_bench.files.text_out import first_line
from barista_bench.models.answer_schemas import Schema, answer_grammar

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_WORD = 32  # tokens per word of a mask
_LONGEST = 1024  # longest token in bytes: llguidance panics at a longer token
_MAX_FORMS = 256  # limit of cached grammars; each has the states of its automaton


class AnswerHolder:
    """Constrains answers to schemas, for one tokenizer.

    Args:
        vocabulary: number of tokens that the model scores; some models score more tokens than their tokenizer has.
        end_ids: tokens that end an answer.
        tags: opening and closing tag of the model's thoughts; None if the model has no such tags.

    Raises:
        ModelError: llguidance cannot read the tokenizer, or no token ends an answer.
    """

    def __init__(
        self,
        name: str,
        tokenizer: PreTrainedTokenizerFast,
        vocabulary: int,
        end_ids: Collection[int],
        tags: tuple[str, str] | None,
    ) -> None:
        remedy = "leave structured_output out"
        if not end_ids:
            raise ModelError(f"model {name}: no token ends its answers, which cannot be held so. Fix: {remedy}")
        if too_long := sum(len(token.encode()) > _LONGEST for token in tokenizer.get_vocab()):
            reason = f"{too_long} of its tokens are longer than the {_LONGEST} bytes that llguidance reads"
            raise ModelError(f"model {name}: its answers cannot be held to a schema: {reason}. Fix: {remedy}")
        try:
            size = max(vocabulary, len(tokenizer))
            self._tokenizer = from_tokenizer(tokenizer, n_vocab=size, eos_token=sorted(end_ids))
        except ValueError as error:
            reason = f"llguidance cannot read its tokenizer ({first_line(error)})"
            raise ModelError(
                f"model {name}: its answers cannot be held to a schema: {reason}. Fix: {remedy}"
            ) from error
        self._thought = tags and cast("tuple[str, str]", tuple(self._lark(tokenizer, tag) for tag in tags))
        self._matcher_of = lru_cache(_MAX_FORMS)(self._compile)
        self._executor = LLExecutor()

    def matcher(self, schema: Schema | None, *, opens_thinking: bool) -> LLMatcher | None:
        """Return a matcher at the beginning of an answer; None for an answer without a schema.

        Copy the matcher for each sample.

        Args:
            opens_thinking: the prompt has opened the thinking.

        Raises:
            ValueError: llguidance does not support the schema.
        """
        grammar = self.grammar(schema, opens_thinking=opens_thinking)
        return None if grammar is None else self._matcher_of(grammar)

    def grammar(self, schema: Schema | None, *, opens_thinking: bool) -> str | None:
        """Return the grammar of an answer (`answer_grammar`); None without a schema, and for `{}`, which allows any."""
        if not schema:
            return None
        return answer_grammar(schema, self._thought, opens_thinking=opens_thinking)

    def processor(self, first_matchers: Sequence[LLMatcher | None], columns: int, pad_id: int) -> SchemaMasks:
        """Return the masks for a batch with prompts padded to `columns` tokens.

        Each row gets a copy of its matcher.
        """
        matchers = [matcher and matcher.deep_copy() for matcher in first_matchers]
        return SchemaMasks(matchers, self._tokenizer.vocab_size, columns, pad_id, self._executor)

    def _compile(self, grammar: str) -> LLMatcher:
        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(grammar), log_level=0)
        _check(matcher)
        return matcher

    def _lark(self, tokenizer: PreTrainedTokenizerFast, tag: str) -> str:
        token = tokenizer.get_vocab().get(tag)
        is_special = token is not None and self._tokenizer.is_special_token(token)
        return f"<[{token}]>" if is_special else json.dumps(tag)


class SchemaMasks(LogitsProcessor):
    """Masks tokens that a row's schema does not allow next; rows without a matcher stay unchanged.

    Place this processor before all processors that choose among the scores. Then top-k, nucleus and log-probabilities
    cover only the allowed tokens.
    """

    def __init__(
        self, matchers: Sequence[LLMatcher | None], vocabulary: int, columns: int, pad_id: int, executor: LLExecutor
    ) -> None:
        self._live_matchers = {row: matcher for row, matcher in enumerate(matchers) if matcher is not None}
        self._columns, self._pad_id, self._executor = columns, pad_id, executor
        self._masks = np.full((len(matchers), -(-vocabulary // _WORD)), -1, dtype=np.int32)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return scores of shape (rows, vocabulary); tokens that are not allowed have the score -inf.

        Raises:
            ValueError: llguidance failed for a row.
        """
        if input_ids.shape[1] > self._columns:
            self._take(input_ids[:, -1].tolist())
        if not self._live_matchers:
            return scores
        pairs = [(matcher, row) for row, matcher in self._live_matchers.items()]
        words = self._masks.shape[1]
        self._executor.unsafe_compute_mask_ptr(pairs, self._masks.ctypes.data, words * 4, len(self._masks))
        for matcher, _ in pairs:
            _check(matcher)
        bits = np.unpackbits(self._masks.view(np.uint8), axis=1, bitorder="little")
        allowed = np.zeros(tuple(scores.shape), dtype=np.bool_)
        shared = min(allowed.shape[1], bits.shape[1])
        allowed[:, :shared] = bits[:, :shared]
        allowed[[row for row in range(len(allowed)) if row not in self._live_matchers]] = True
        self._allowed = allowed
        return cast("torch.FloatTensor", scores.masked_fill(~torch.from_numpy(allowed).to(scores.device), -torch.inf))

    def allows(self, row: int, token: int) -> bool:
        """Return True if the latest mask allows a token in a row."""
        return row not in self._live_matchers or bool(self._allowed[row, token])

    def _take(self, tokens: Sequence[int]) -> None:
        """Advance each row's matcher by the row's chosen token.

        A finished row allows all tokens from then on, because only padding follows.
        """
        for row, matcher in list(self._live_matchers.items()):
            is_over = matcher.is_stopped()
            if not is_over and not matcher.consume_token(tokens[row]):
                is_over = tokens[row] == self._pad_id  # padding follows a stop text
                if not is_over:
                    _check(matcher)
            if is_over:
                del self._live_matchers[row]


def _check(matcher: LLMatcher) -> None:
    if matcher.is_error():
        cause = matcher.get_error().partition("\n")[0]
        raise ValueError(f"its answer cannot follow its schema: {cause}")
