"""The stream of a served model: answers as they come, no more taken than the window, nothing left behind."""

import json
import threading
import time

import pytest
from PIL import Image

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models import Completion, Request
from tests.models.served_kit import GREEDY, SAMPLED, load, request, texts
from tests.served_standin import Fault, ServedStandIn, expected_text, random_faults

pytestmark = pytest.mark.usefixtures("short_waits")


def test_answers_are_handed_out_as_they_come_and_no_more_is_taken_than_the_window():
    held, most = 0, 0

    def source():
        nonlocal held, most
        for n in range(30):
            held += 1
            most = max(most, held)
            yield request(n, (1,))

    with ServedStandIn(seconds=0.01) as server:
        model = load(server, max_concurrency=4)
        for _ in model.stream(source(), GREEDY):
            held -= 1
    assert held == 0
    assert most <= model.window == 6


def test_what_is_finished_comes_before_the_next_request_is_taken():
    with ServedStandIn() as server:
        model = load(server, max_concurrency=1)
        order = []

        def source():
            for n in range(3):
                order.append(f"take {n}")
                yield request(n, (1,))
                time.sleep(0.3)  # decoding of the next one; the server answers meanwhile

        for answered in model.stream(source(), GREEDY):
            order.append(f"give {answered.request.request_id[1:]}")
            assert answered.seconds > 0
    assert order == ["take 0", "take 1", "give 0", "take 2", "give 1", "give 2"]


def own_threads() -> set[str]:
    """Names of the threads that are not the server's."""
    return {thread.name for thread in threading.enumerate() if "process_request" not in thread.name}


def test_a_consumer_that_stops_leaves_no_call_and_no_thread_behind():
    with ServedStandIn(lambda call: None if "0?" in json.dumps(call.body) else Fault("hang")) as server:
        before = own_threads()
        stream = load(server, timeout=60).stream((request(n, (1,)) for n in range(100)), GREEDY)
        assert next(stream).request.request_id == "r0"
        assert own_threads() > before
        begun = time.monotonic()
        stream.close()
        assert time.monotonic() - begun < 5
        while own_threads() != before and time.monotonic() - begun < 10:
            time.sleep(0.01)  # workers of the event loop end a moment after it
        assert own_threads() == before
        assert len(server.calls) < 12


def test_a_source_that_fails_is_heard_and_leaves_nothing_hanging():
    def source():
        yield request(0, (1,))
        raise OSError("disk gone")

    with ServedStandIn(lambda call: Fault("hang")) as server, pytest.raises(OSError, match="disk gone"):
        list(load(server, timeout=60).stream(source(), GREEDY))


def test_a_prompt_that_does_not_place_its_images_raises_and_names_the_request():
    wrong = Request("odd", Prompt("", (ImagePart(1),)), (Image.new("RGB", (8, 8)),), (1,))
    with ServedStandIn() as server:
        for ask in (lambda: load(server).generate([wrong], GREEDY), lambda: list(load(server).stream([wrong], GREEDY))):
            with pytest.raises(ValueError, match="request odd"):
                ask()
    assert server.calls == []


@pytest.mark.parametrize(
    ("part", "images", "said"),
    [
        (TextPart("half a pair: \ud800"), (), "UTF-8"),
        (ImagePart(0), (Image.new("RGB", (70_000, 1)),), "odd: its prompt cannot be prepared"),
    ],
    ids=["no text of JSON", "no picture of JPEG"],
)
def test_what_no_call_can_hold_fails_alone(part, images, said):
    with ServedStandIn() as server:
        odd = Request("odd", Prompt("", (part,)), images, (1,))
        bad, good = load(server).generate([odd, request(1, (1,))], GREEDY)
    assert said in bad[0].error
    assert isinstance(good[0], Completion)


def test_answers_keep_their_order_and_equal_requests_stay_apart():
    with ServedStandIn(random_faults(7, 0.3)) as server:
        asked = [request(n % 3, (n,)) for n in range(12)]
        answers = load(server, timeout=0.3).generate(asked, SAMPLED)
        wanted = [[expected_text(next(c.body for c in server.calls if c.body["seed"] == n))] for n in range(12)]
    assert texts(answers) == wanted
