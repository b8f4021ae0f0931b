"""Prompts reach the model whole: every word of them, every image in its place, padding on the left."""

from collections import Counter
from dataclasses import replace
from threading import Thread

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from barista_bench.core.prompt import Exchange, ImagePart, Prompt, TextPart  # noqa: E402
from barista_bench.core.settings import check_settings  # noqa: E402
from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models.base import Request  # noqa: E402
from barista_bench.models.local.inputs import PromptEncoder  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.models.settings import GeneratorSettings  # noqa: E402
from tests.models.transformers_kit import GREEDY, change_json, mixed_requests, picture, request_of  # noqa: E402


def test_tokens_are_counted_without_padding(any_model):
    requests = mixed_requests()
    alone = [any_model._engine.encoder.encode(request).prompt_tokens for request in requests]
    answers = any_model.generate(requests, GREEDY)
    assert [completion.input_tokens for [completion] in answers] == alone
    assert len(set(alone)) == 4


def test_batches_are_padded_on_the_left(any_model):
    encoder = any_model._engine.encoder
    batch = encoder.batch([encoder.encode(request) for request in mixed_requests()])
    assert bool((batch["attention_mask"][:, -1] == 1).all())
    assert int(batch["attention_mask"][3].argmax()) > 0


def test_a_batch_put_together_equals_one_from_the_processor(any_model):
    """Requests are processed one by one, so that a bad one fails without the others."""
    encoder = any_model._engine.encoder
    encoded = [encoder.encode(request) for request in mixed_requests()[:3]]
    batch, whole = encoder.batch(encoded), encoder._apply([item.messages for item in encoded])
    assert batch.keys() == whole.keys()
    assert all(torch.equal(batch[name], whole[name]) for name in batch)


def test_right_padding_set_by_the_checkpoint_is_overruled(copy):
    change_json(copy / "tokenizer_config.json", padding_side="right")
    assert transformers.AutoProcessor.from_pretrained(copy).tokenizer.padding_side == "right"
    assert TransformersModel.load(str(copy))._engine.encoder.processor.tokenizer.padding_side == "left"


REFUSES = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
DROPS = "{% set messages = messages | rejectattr('role', 'equalto', 'system') %}"


@pytest.mark.parametrize(("prefix", "style"), [("", "parts"), (REFUSES, "folded"), (DROPS, "folded")])
def test_the_system_text_reaches_the_model_with_any_template(copy, prefix, style):
    template = copy / "chat_template.jinja"
    template.write_text(prefix + template.read_text())
    encoder = TransformersModel.load(str(copy))._engine.encoder
    assert encoder.system_style == style
    encoded = encoder.encode(request_of(0, 1, "the cup", system="Answer in JSON."))
    written = encoder.tokenizer.decode(encoded.tensors["input_ids"][0])
    assert Counter(written.split())["JSON."] + written.count("JSON.<") == 1
    assert written.index("JSON") < written.index("the cup")


@pytest.mark.parametrize(("prefix", "system"), [("", True), (REFUSES, True), ("", False)])
def test_earlier_turns_come_between_the_system_text_and_the_question(copy, prefix, system):
    template = copy / "chat_template.jinja"
    template.write_text(prefix + template.read_text())
    encoder = TransformersModel.load(str(copy))._engine.encoder
    request = request_of(0, 0, "the scores", system="Look." if system else "")
    asked = replace(request, prompt=replace(request.prompt, earlier=(Exchange("the steps", "a cup"),)))
    turns = [(turn["role"], "".join(part["text"] for part in turn["content"])) for turn in encoder.messages(asked)]
    folded = "Look.\n\n" if prefix else ""
    later = [("user", f"{folded}the steps"), ("assistant", "a cup"), ("user", "the scores")]
    assert turns == [*([("system", "Look.")] if system and not prefix else []), *later]


def test_an_empty_system_text_writes_no_system_turn(model):
    encoded = model._engine.encoder.encode(request_of(0, 1, "cup"))
    assert "system" not in model._engine.encoder.tokenizer.decode(encoded.tensors["input_ids"][0])


def test_a_template_that_refuses_a_request_fails_that_request(copy):
    template = copy / "chat_template.jinja"
    refuses = "{% if 'jug' in messages[0]['content'][-1]['text'] %}{{ raise_exception('no jugs') }}{% endif %}"
    template.write_text(refuses + template.read_text())
    answers = TransformersModel.load(str(copy)).generate([request_of(0, 1, "cup"), request_of(1, 1, "jug")], GREEDY)
    assert answers[0][0].output_tokens == GREEDY.max_new_tokens
    assert "request example-1: its prompt cannot be prepared: TemplateError: no jugs" in answers[1][0].error


def test_the_encoder_measures_each_size_of_image_once(loaded, monkeypatch):
    encoder = loaded["llava"]._engine.encoder
    monkeypatch.setattr(encoder, "_image_tokens", {})
    calls = []
    made = PromptEncoder._apply
    monkeypatch.setattr(PromptEncoder, "_apply", lambda self, c: (calls.append(1), made(self, c))[1])
    single, three = request_of(0, 1, "cup"), request_of(0, 3, "cup")
    assert encoder.tokens(three) > encoder.tokens(single)
    encoder.tokens(single)
    assert len(calls) == len({(-(-w // 32), -(-h // 32)) for w, h in (i.size for i in three.images)})


def test_longer_requests_are_measured_as_longer(any_model):
    encoder = any_model._engine.encoder
    requests = mixed_requests()
    assert sorted(requests, key=encoder.tokens) == sorted(requests, key=lambda r: encoder.encode(r).prompt_tokens)


def test_encoding_in_a_thread_beside_counting_and_reading_gives_the_same_tensors(any_model):
    """Rust tokenizers refuse to be changed while another thread reads with them."""
    encoder, requests, errors, made = any_model._engine.encoder, mixed_requests(), [], []
    expected = [encoder.encode(request).tensors["input_ids"] for request in requests]

    def encode() -> None:
        try:
            made.extend(encoder.encode(requests[n % 4]).tensors["input_ids"] for n in range(24))
        except RuntimeError as error:
            errors.append(error)

    thread = Thread(target=encode)
    thread.start()
    while thread.is_alive():
        encoder.tokens(requests[1])
        encoder.tokenizer.decode([5, 6, 7])
        encoder.batch([encoder.encode(request) for request in requests[:2]])
    thread.join()
    assert errors == []
    assert all(torch.equal(mask, expected[n % 4]) for n, mask in enumerate(made))
    assert len(made) == 24


class VideoTaker:
    """Replaces a processor with a video processor, which needs torchvision; keeps its input."""

    def __init__(self, processor) -> None:
        self.tokenizer, self.chat_template, self.video_processor = processor.tokenizer, "a template", object()
        self.given: list[tuple[list, dict]] = []

    def apply_chat_template(self, conversations, *, tokenize, processor_kwargs=None, **_):
        if tokenize:
            self.given.append((conversations, processor_kwargs))
        rows = torch.zeros(len(conversations), 3, dtype=torch.long)
        return {"input_ids": rows, "attention_mask": torch.ones_like(rows)} if tokenize else str(conversations)


def test_images_that_follow_each_other_become_one_video_of_all_their_frames(loaded):
    processor = VideoTaker(loaded["gemma3"]._engine.encoder.processor)
    encoder = PromptEncoder(processor, "m", check_settings(GeneratorSettings, {"frames_as": "video", "video_fps": 4.0}))
    images = tuple(picture(n, (32, 32)) for n in range(6))
    texts = TextPart("then"), ImagePart(3), TextPart("and"), TextPart(" now")
    parts = (*map(ImagePart, (0, 2, 1)), *texts, *map(ImagePart, (4, 5)))
    encoder.encode(Request("r", Prompt("", parts), images))
    [conversation], wanted = processor.given[-1]
    first, then, single, now, last = conversation[0]["content"]
    assert first == {"type": "video", "video": [images[0], images[2], images[1]]}
    assert (then, now) == ({"type": "text", "text": "then"}, {"type": "text", "text": "and now"})
    assert single == {"type": "image", "image": images[3]}
    assert last == {"type": "video", "video": [images[4], images[5]]}
    assert wanted["do_sample_frames"] is False
    assert wanted["video_metadata"] == [
        {"total_num_frames": 3, "fps": 4.0, "frames_indices": [0, 1, 2]},
        {"total_num_frames": 2, "fps": 4.0, "frames_indices": [0, 1]},
    ]


def test_a_processor_without_video_refuses_frames_as_video(folders):
    with pytest.raises(ModelError, match=r"takes no video. Fix: use frames_as='images'"):
        TransformersModel.load(str(folders["gemma3"]), frames_as="video")


def test_texts_between_images_stay_in_their_places(any_model):
    parts = (TextPart("Frame 1:"), ImagePart(0), TextPart("Frame 2:"), ImagePart(1), TextPart("What?"))
    images = (picture(0, (32, 32)), picture(1, (32, 32)))
    (turn,) = any_model._engine.encoder.messages(Request("r", Prompt("", parts), images))
    shown = [part.get("text", part.get("image")) for part in turn["content"]]
    assert shown == ["Frame 1:", images[0], "Frame 2:", images[1], "What?"]
