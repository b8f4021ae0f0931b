"""Ablations remove only images."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.model_names import ABLATIONS
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.errors import ConfigError
from barista_bench.models import (
    AnsweredRequest,
    Completion,
    Failure,
    GenerationConfig,
    ModelIdentity,
    Request,
    StreamingModel,
)
from barista_bench.models.ablations import ablate, shuffled_frames

CONFIG = GenerationConfig()


class Recorder:
    """Answers with the greys of its images, in the order in which the prompt places them."""

    def __init__(self) -> None:
        self.identity = ModelIdentity("org/model", "abc", {"dtype": "float32"})
        self.box_format = BoxFormat("yxyx", 1000)
        self.batch_size = 3
        self.seen: list[Request] = []

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        self.seen += requests
        return [[Completion(shown(request)) for _ in request.seeds] for request in requests]


class StreamingRecorder(Recorder):
    window = 2

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[AnsweredRequest]:
        """Answers come in pairs, the later one first."""
        held: list[Request] = []
        for request in requests:
            held.append(request)
            if len(held) == self.window:
                yield from (self.answered(request, config) for request in reversed(held))
                held = []
        yield from (self.answered(request, config) for request in held)

    def answered(self, request: Request, config: GenerationConfig) -> AnsweredRequest:
        return AnsweredRequest(request, self.generate([request], config)[0], 0.5)


def shown(request: Request) -> str:
    places = [part.index for part in request.prompt.parts if isinstance(part, ImagePart)]
    return ",".join(str(request.images[index].getpixel((0, 0))) for index in places)


def request(count: int, name: str = "a", seeds: tuple[int, ...] = (7,)) -> Request:
    """Images of grey 0, 1, 2, ..., with text between them."""
    parts = [part for index in range(count) for part in (TextPart(f"[{index}]"), ImagePart(index))]
    prompt = Prompt("be brief", (*parts, TextPart("what happens?")))
    images = tuple(Image.new("L", (4, 4), index) for index in range(count))
    return Request(name, prompt, images, seeds, {"phrase": "cup"}, {"type": "array"})


def texts(prompt: Prompt) -> list[str]:
    return [part.text for part in prompt.parts if isinstance(part, TextPart)]


def test_first_frame_shows_the_image_that_the_prompt_places_first() -> None:
    model = Recorder()
    asked = request(3)
    swapped = Prompt("", (ImagePart(2), TextPart("then"), ImagePart(0), ImagePart(1)))
    answers = ablate(model, "first_frame").generate([asked, replace(asked, prompt=swapped)], CONFIG)
    assert answers == [[Completion("0")], [Completion("2")]]
    assert model.seen[1].prompt.parts == (ImagePart(0), TextPart("then"))


@given(st.integers(2, 12), st.text(min_size=1, max_size=20))
def test_shuffled_frames_are_the_same_images_in_an_order_that_depends_only_on_the_id(count: int, name: str) -> None:
    asked = request(count, name)
    order = shown(shuffled_frames(asked)).split(",")
    assert sorted(order, key=int) == [str(n) for n in range(count)]
    assert order != [str(n) for n in range(count)]
    assert shown(shuffled_frames(replace(asked, seeds=(99,), inputs={}))).split(",") == order
    assert shuffled_frames(asked).prompt == asked.prompt


def test_different_examples_are_shuffled_differently() -> None:
    assert len({shown(shuffled_frames(request(6, f"example {n}"))) for n in range(20)}) > 10


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_images_have_no_order_to_change(count: int) -> None:
    assert shuffled_frames(request(count)) == request(count)


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_everything_but_images_is_passed_on_and_results_name_model_and_ablation(ablation: str) -> None:
    inner, asked = Recorder(), request(4, seeds=(1, 2))
    model = ablate(inner, ablation)
    answers = model.generate([asked], CONFIG)
    (seen,) = inner.seen
    assert (seen.request_id, seen.seeds, seen.inputs, seen.schema) == ("a", (1, 2), asked.inputs, asked.schema)
    assert len(answers[0]) == 2
    settings = {"dtype": "float32", "ablation": ablation}
    assert model.identity == ModelIdentity(f"{ablation}:org/model", "abc", settings)
    assert model.box_format == BoxFormat("yxyx", 1000)


def test_ablations_of_ablations_are_named_in_order() -> None:
    model = ablate(ablate(Recorder(), "shuffled_frames"), "first_frame")
    assert model.identity.name == "first_frame:shuffled_frames:org/model"
    assert model.identity.settings["ablation"] == "first_frame, shuffled_frames"


def test_a_batch_that_shrinks_shrinks_for_both() -> None:
    inner = Recorder()
    model = ablate(inner, "text_only")
    inner.batch_size = 1
    assert model.batch_size == 1
    model.batch_size = 5
    assert inner.batch_size == 5


@pytest.mark.parametrize("name", ["versions", "sends_files"])
def test_the_wrapper_passes_on_the_models_identity_and_no_method_that_would_see_the_images(name: str) -> None:
    model = StreamingRecorder()
    setattr(model, name, "said")
    blind = ablate(ablate(model, "shuffled_frames"), "text_only")
    assert getattr(blind, name) == "said"
    assert not hasattr(blind, "answered")


def test_only_a_streaming_model_streams() -> None:
    assert not isinstance(ablate(Recorder(), "text_only"), StreamingModel)
    model = ablate(StreamingRecorder(), "text_only")
    assert isinstance(model, StreamingModel)
    assert model.window == 2


def test_streamed_answers_come_with_the_request_as_it_was() -> None:
    model = ablate(StreamingRecorder(), "first_frame")
    assert isinstance(model, StreamingModel)
    asked, taken = [request(3, name) for name in "abcde"], list[str]()

    def source() -> Iterator[Request]:
        for each in asked:
            taken.append(each.request_id)
            yield each

    stream = model.stream(source(), CONFIG)
    answers = [next(stream)]
    assert taken == ["a", "b"], "requests are taken as the model takes them"
    answers += stream
    assert [answer.request.request_id for answer in answers] == list("badce")
    assert all(answer.request is asked["abcde".index(answer.request.request_id)] for answer in answers)
    assert [answer.completions for answer in answers] == [[Completion("0")]] * 5
    assert {answer.seconds for answer in answers} == {0.5}


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_images_that_do_not_fit_the_prompt_are_the_callers_error(ablation: str) -> None:
    wrong = replace(request(2), images=request(3).images)
    with pytest.raises(ValueError, match=r"request a: the prompt places images \[0, 1\], but 3 images came"):
        ablate(Recorder(), ablation).generate([wrong], CONFIG)


def test_an_unknown_ablation_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no ablation .blindfold.\. Fix: use one of text_only"):
        ablate(Recorder(), "blindfold")


@pytest.mark.parametrize(
    ("ablation", "wanted"), [("text_only", ["1:", "2:", "What?"]), ("first_frame", ["1:", 0, "2:", "What?"])]
)
def test_texts_between_images_stay_in_their_places(ablation: str, wanted: list[str | int]) -> None:
    parts = (TextPart("1:"), ImagePart(0), TextPart("2:"), ImagePart(1), TextPart("What?"))
    recorder = Recorder()
    images = (Image.new("RGB", (2, 2)), Image.new("RGB", (3, 3)))
    list(ablate(recorder, ablation).generate([Request("r", Prompt("", parts), images)], CONFIG))
    (seen,) = recorder.seen
    assert [part.text if isinstance(part, TextPart) else part.index for part in seen.prompt.parts] == wanted
