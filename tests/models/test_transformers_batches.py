"""Batches, streams, order and memory never change an answer, and no failure costs another request its answer."""

import threading
import time
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.core.prompt import ImagePart, Prompt, TextPart  # noqa: E402
from barista_bench.models.base import Failure, Request, StreamingModel, repeat_answer  # noqa: E402
from barista_bench.models.local.inputs import PromptEncoder  # noqa: E402
from tests.models.transformers_kit import (  # noqa: E402
    GREEDY,
    SAMPLED,
    alike,
    fail_where,
    many_requests,
    mixed_requests,
    picture,
    request_of,
    texts,
    watch,
)

CPU_OUT_OF_MEMORY = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
)
GPU_OUT_OF_MEMORY = torch.OutOfMemoryError("CUDA out of memory")


def test_batched_answers_equal_single_ones(any_model):
    requests = mixed_requests()
    batched = any_model.generate(requests, GREEDY)
    assert alike(batched) == alike([any_model.generate([request], GREEDY)[0] for request in requests])
    assert len({text for [text] in texts(batched)}) == len(requests)


@pytest.mark.full
@pytest.mark.parametrize(
    "config",
    [
        GREEDY,
        SAMPLED,
        replace(GREEDY, repetition_penalty=1.5),
        replace(SAMPLED, top_k=20, top_p=0.9, repetition_penalty=1.2),
    ],
    ids=["greedy", "sampled", "greedy with penalty", "sampled with everything"],
)
def test_batch_sizes_one_two_and_eight_give_the_same_answers(any_model, config):
    requests, answers = many_requests(seeds=(5, 6)), {}
    for size in (1, 2, 8):
        any_model.batch_size = size
        answers[size] = any_model.generate(requests, config)
        assert {completion.batch_size for each in answers[size] for completion in each} <= set(range(1, 2 * size + 1))
    assert alike(answers[1]) == alike(answers[2]) == alike(answers[8])
    assert len({text for each in texts(answers[8]) for text in each}) > len(requests) // 2


def test_log_probabilities_do_not_depend_on_the_batch(any_model):
    config = replace(GREEDY, top_logprobs=3)
    together = any_model.generate(mixed_requests(), config)
    for request, [answer] in zip(mixed_requests(), together, strict=True):
        [[alone]] = any_model.generate([request], config)
        assert [token.token for token in answer.logprobs] == [token.token for token in alone.logprobs]
        assert [token.logprob for token in answer.logprobs] == pytest.approx(
            [token.logprob for token in alone.logprobs], abs=1e-3
        )


def test_an_answer_holds_the_size_of_its_batch(model):
    [[first, two]] = model.generate([request_of(0, 1, "cup", seeds=(1, 2))], SAMPLED)
    assert (first.batch_size, two.batch_size) == (2, 2)
    assert {answer.batch_size for [answer] in model.generate(mixed_requests(), GREEDY)} == {4}


def test_the_answer_depends_on_the_order_of_the_images(any_model):
    request = mixed_requests()[1]
    turned = Request(request.request_id, request.prompt, request.images[::-1], request.seeds)
    assert any_model.generate([request], GREEDY) != any_model.generate([turned], GREEDY)


def test_answers_come_in_the_order_of_the_requests(model):
    requests = mixed_requests()
    expected = alike(model.generate(requests, GREEDY))
    model.batch_size = 1
    assert alike(model.generate(requests, GREEDY)) == expected
    assert alike(model.generate(requests[::-1], GREEDY)) == expected[::-1]
    assert model.generate([], GREEDY) == []


def test_longest_requests_are_generated_first(model, monkeypatch):
    lengths: list[int] = []
    watch(monkeypatch, model, lambda kwargs: lengths.append(kwargs["input_ids"].shape[1]))
    model.batch_size = 1
    model.generate(mixed_requests(), GREEDY)
    assert lengths == sorted(lengths, reverse=True)


def test_samples_of_a_prompt_share_one_prefill(any_model):
    rows = []
    hook = any_model._engine.model.register_forward_pre_hook(
        lambda _module, _args, kwargs: rows.append(kwargs["input_ids"].shape[0]), with_kwargs=True
    )
    requests = mixed_requests(seeds=(1, 2, 3))
    answers = any_model.generate(requests, SAMPLED)
    hook.remove()
    assert rows[0] == 4
    assert set(rows[1:]) == {12}
    for request, drawn in zip(requests, answers, strict=True):
        prompt = drawn[0].input_tokens
        assert [sample.cached_tokens for sample in drawn] == [0, prompt, prompt], request.request_id


def test_greedy_decoding_is_done_once_for_all_seeds(model, monkeypatch):
    rows: list[int] = []
    watch(monkeypatch, model, lambda kwargs: rows.append(len(kwargs["input_ids"])))
    [answers] = model.generate([request_of(0, 1, "cup", seeds=(1, 2, 3))], GREEDY)
    assert rows == [1]
    assert answers == repeat_answer(answers[0], 3)
    assert [answer.input_tokens == answer.output_tokens == 0 for answer in answers] == [False, True, True]


def test_out_of_memory_halves_the_batch_and_loses_nothing(model, monkeypatch):
    requests = mixed_requests(seeds=(1, 2))
    expected = model.generate(requests, SAMPLED)
    calls = fail_where(monkeypatch, model, lambda samples, _: samples > 2, CPU_OUT_OF_MEMORY)
    assert alike(model.generate(requests, SAMPLED)) == alike(expected)
    assert calls == [8, 4, 2, 2, 4, 2, 2]  # the last two prompts are shorter: 4 samples of them might have fitted
    calls.clear()
    assert alike(model.generate(requests[::-1], SAMPLED)) == alike(expected[::-1])
    assert calls == [2, 2, 2, 2]


def test_one_long_prompt_does_not_shrink_the_batches_of_short_ones(model, monkeypatch):
    long = [request_of(n, 4, "the cup and the jug " * 8) for n in range(4)]
    short = [request_of(n, 0, "cup") for n in range(8)]
    too_long = lambda samples, kwargs: samples * kwargs["input_ids"].shape[1] > 300  # noqa: E731
    calls = fail_where(monkeypatch, model, too_long, CPU_OUT_OF_MEMORY)
    answers = model.generate(long, GREEDY)
    assert not any(isinstance(completion, Failure) for each in answers for completion in each)
    assert max(calls) == calls[0] > calls[-1]
    calls.clear()
    model.generate(short, GREEDY)
    assert calls == [8]
    assert model.batch_size == 8


def test_out_of_memory_with_one_prompt_splits_its_samples(model, monkeypatch):
    request = request_of(0, 1, "cup", seeds=(1, 2, 3))
    expected = model.generate([request], SAMPLED)
    calls = fail_where(monkeypatch, model, lambda samples, _: samples > 1, GPU_OUT_OF_MEMORY)
    assert alike(model.generate([request], SAMPLED)) == alike(expected)
    assert calls == [3, 2, 1, 1, 1]


def test_only_a_request_too_large_for_the_memory_fails(model, monkeypatch):
    requests = [request_of(0, 1, "cup"), request_of(1, 6, "milk " * 50), request_of(2, 1, "jug")]
    expected = model.generate(requests, GREEDY)
    fail_where(monkeypatch, model, lambda _, kwargs: kwargs["input_ids"].shape[1] > 100, GPU_OUT_OF_MEMORY)
    first, [failure], last = model.generate(requests, GREEDY)
    assert alike([first, last]) == alike([expected[0], expected[2]])
    assert "out of memory with 1 samples" in failure.error


def test_another_generation_error_costs_only_its_request(model, monkeypatch):
    requests = mixed_requests()
    expected = alike(model.generate(requests, GREEDY))
    three_images = lambda _, kwargs: kwargs.get("pixel_values") is not None and len(kwargs["pixel_values"]) >= 3  # noqa: E731
    fail_where(monkeypatch, model, three_images, RuntimeError("shapes do not match\nmore"))
    answers = alike(model.generate(requests, GREEDY))
    assert answers[1] == [Failure("generation failed: RuntimeError: shapes do not match")]
    assert [answers[k] for k in (0, 2, 3)] == [expected[k] for k in (0, 2, 3)]
    assert model._engine.budget.tokens is None


def test_a_request_whose_scores_are_not_numbers_fails(model):
    """Half precision that overflows would otherwise answer with the first token of the vocabulary."""
    requests = mixed_requests()
    expected = alike(model.generate(requests, SAMPLED))

    def spoil(_module, _args, kwargs, outputs):
        written = [model._engine.encoder.tokenizer.decode(row) for row in kwargs["input_ids"]]
        outputs.logits[[row for row, text in enumerate(written) if "JSON" in text]] = torch.nan

    hook = model._engine.model.register_forward_hook(spoil, with_kwargs=True)
    answers = alike(model.generate(requests, SAMPLED))
    hook.remove()
    assert "not numbers" in answers[1][0].error
    assert [answers[k] for k in (0, 2, 3)] == [expected[k] for k in (0, 2, 3)]


def test_only_a_request_that_the_processor_refuses_fails(model):
    bad = Request("bad", Prompt("", (TextPart("<start_of_image> cup"),)), (), (1, 2))
    good = mixed_requests()
    answers = model.generate([good[0], bad, good[1]], GREEDY)
    assert len(answers[1]) == 2
    assert all(isinstance(completion, Failure) and "request bad" in completion.error for completion in answers[1])
    assert [answers[0], answers[2]] == model.generate(good[:2], GREEDY)


@pytest.mark.parametrize(
    ("parts", "images"),
    [((ImagePart(0),), 2), ((ImagePart(0), ImagePart(1)), 1), ((ImagePart(0), ImagePart(0)), 2), ((), 1)],
)
def test_images_that_are_not_placed_once_are_an_error(model, parts, images):
    pictures = tuple(picture(k, (32, 32)) for k in range(images))
    request = Request("example-7", Prompt("", (*parts, TextPart("cup"))), pictures)
    with pytest.raises(ValueError, match="request example-7: the prompt places images"):
        model.generate([request_of(0, 1, "cup"), request], GREEDY)
    with pytest.raises(ValueError, match="request example-7: the prompt places images"):
        list(model.stream([request_of(0, 1, "cup"), request], GREEDY))


@pytest.mark.full
@pytest.mark.parametrize("config", [GREEDY, SAMPLED])
def test_a_stream_answers_every_request_once_as_generate_does(any_model, config):
    requests = many_requests(seeds=(1, 2))
    any_model.batch_size = 3
    answered = list(any_model.stream(iter(requests), config))
    names = [request.request_id for request in requests]
    expected = dict(zip(names, alike(any_model.generate(requests, config)), strict=True))
    assert len(answered) == len(names)
    assert {answer.request.request_id: alike([answer.completions])[0] for answer in answered} == expected
    assert all(answer.seconds > 0 for answer in answered)


def test_finished_answers_are_handed_back_before_more_requests_are_taken(model):
    assert isinstance(model, StreamingModel)
    taken, given = [], 0
    model.batch_size = 2

    def source():
        for request in many_requests():
            taken.append(given)
            yield request

    for _ in model.stream(source(), GREEDY):
        given += 1
    assert taken[:2] == [0, 0]
    assert taken[2:] == sorted(taken[2:])
    assert min(taken[2:]) == 2  # the first batch was out before the third request was asked for


def test_no_more_than_the_window_is_at_hand(model, monkeypatch):
    monkeypatch.setattr(type(model._engine.budget), "window", property(lambda _self: 5))
    model.batch_size = 2
    taken, given, most = 0, 0, 0

    def source():
        nonlocal taken, most
        for request in [*many_requests(), *many_requests()]:
            taken += 1
            most = max(most, taken - given)
            yield request

    for _ in model.stream(source(), GREEDY):
        given += 1
    assert given == 20
    # The window, and the batch that is being generated or made ready.
    assert 5 <= most <= 5 + 2 * 2


def test_similar_lengths_come_together(model, monkeypatch):
    """Requests of two lengths in turn: after the first batch there is one of each length, longest first."""
    spread: list[int] = []
    watch(monkeypatch, model, lambda kwargs: spread.append(int((kwargs["attention_mask"] == 0).sum())))
    model.batch_size = 3
    requests = [request_of(n % 2, 1, "cup" if n % 2 else "the jug " * 12) for n in range(30)]
    assert len(list(model.stream(requests, GREEDY))) == 30
    assert spread[0] > 0
    assert len(spread) == 10
    assert sum(padding > 0 for padding in spread) <= 3


def test_the_next_batch_is_encoded_while_the_current_one_is_generated(model, monkeypatch):
    begun = {n: threading.Event() for n in range(12)}
    encode = PromptEncoder.encode

    def watched(self, request):
        begun[int(request.request_id.removeprefix("example-"))].set()
        return encode(self, request)

    waits: list[bool] = []

    def look(kwargs):
        # At the second batch the third must be under way beside it.
        waits.append(len(waits) != 1 or all(event.wait(30) for event in list(begun.values())[:6]))

    monkeypatch.setattr(PromptEncoder, "encode", watched)
    watch(monkeypatch, model, look)
    model.batch_size = 2
    list(model.stream([request_of(n, 1, "cup") for n in range(12)], GREEDY))
    assert waits == [True] * 6


def test_an_error_of_the_source_is_raised_after_the_finished_answers(model):
    model.batch_size = 2

    def source():
        yield from mixed_requests()[:2]
        raise OSError("the disk is gone")

    stream = model.stream(source(), GREEDY)
    answered = [next(stream), next(stream)]
    assert {answer.request.request_id for answer in answered} == {"example-0", "example-1"}
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)


def test_a_stream_that_is_left_early_leaves_no_thread(model):
    model.batch_size = 2
    before = threading.active_count()
    stream = model.stream(many_requests(), GREEDY)
    next(stream)
    stream.close()
    assert threading.active_count() == before


def test_a_request_without_seeds_gets_no_completion(model):
    [answer] = model.stream([request_of(0, 1, "cup", seeds=())], GREEDY)
    assert (answer.completions, answer.seconds) == ([], 0.0)


def test_the_seconds_of_all_requests_add_up_to_the_seconds_of_generation(model, monkeypatch):
    made, spent = model._engine.model.generate, []

    def timed(**kwargs):
        begun = time.perf_counter()
        answer = made(**kwargs)
        spent.append(time.perf_counter() - begun)
        return answer

    monkeypatch.setattr(model._engine.model, "generate", timed)
    model.batch_size = 2
    begun = time.perf_counter()
    total = sum(answer.seconds for answer in model.stream(many_requests(seeds=(1, 2)), SAMPLED))
    assert sum(spent) <= total <= time.perf_counter() - begun
