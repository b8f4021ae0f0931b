"""A stream hands back what is done before it asks for more, and keeps no more at hand than its window."""

import threading
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.models.base import StreamingModel
from barista_bench.models.local.inputs import PromptEncoder
from tests.models.transformers_kit import GREEDY, SAMPLED, alike, many_requests, mixed_requests, request_of, watch


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


def test_the_next_batch_is_encoded_while_one_is_generated(model, monkeypatch):
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


def test_an_error_of_the_source_comes_through_after_what_was_done(model):
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


def test_requests_without_seeds_are_answered_with_nothing(model):
    [answer] = model.stream([request_of(0, 1, "cup", seeds=())], GREEDY)
    assert (answer.completions, answer.seconds) == ([], 0.0)


def test_the_seconds_of_all_requests_add_up_to_those_of_generation(model, monkeypatch):
    made, spent = model._engine.model.generate, []

    def timed(**kwargs):
        begun = time.perf_counter()
        answer = made(**kwargs)
        spent.append(time.perf_counter() - begun)
        return answer

    monkeypatch.setattr(model._engine.model, "generate", timed)
    model.batch_size = 2
    total = sum(answer.seconds for answer in model.stream(many_requests(seeds=(1, 2)), SAMPLED))
    assert sum(spent) <= total <= 3 * sum(spent)
