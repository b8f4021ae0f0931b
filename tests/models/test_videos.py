"""A model gets the times of frames of a video: in this process, in vLLM's process, and on a server."""

import base64
import io
import json
import logging
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.core.frame_times import FrameTimes, VideoClip, parts_with_clips
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError
from barista_bench.models import Completion, Request
from barista_bench.models.ablations import first_frame, shuffled_frames, text_only
from barista_bench.models.base import tells_own_times, video_settings
from barista_bench.models.local.inputs import PromptEncoder
from barista_bench.models.served.model import ServedModel
from barista_bench.models.served.settings import ServedSettings
from barista_bench.models.settings import GeneratorSettings, TransformersSettings, VllmSettings
from barista_bench.models.vllm import model as vllm_model, worker
from barista_bench.models.vllm.model import VllmModel
from tests.models.served_kit import GREEDY, ask, load, no_fault
from tests.models.test_transformers_inputs import VideoTaker
from tests.models.test_vllm_engine import STANDIN
from tests.models.transformers_kit import picture
from tests.served_standin import Fault, ServedStandIn

EVEN = FrameTimes(30.0, (1200, 1224, 1248, 1272), 9000)
UNEVEN = FrameTimes(25.0, (30, 45, 90, 300))


def clip(times: FrameTimes | None, *parts: ImagePart | TextPart) -> Request:
    """Four frames and a question, unless other parts are named."""
    named = parts or (*map(ImagePart, range(4)), TextPart("What is done?"))
    return Request("clip", Prompt("", named), tuple(picture(n, (32, 24)) for n in range(4)), times=times)


def told(encoder: PromptEncoder, request: Request) -> list[dict[str, object]]:
    encoder.encode(request)
    processor: VideoTaker = encoder.processor  # type: ignore[assignment]
    _, wanted = processor.given[-1]
    assert wanted["do_sample_frames"] is False
    return wanted["video_metadata"]


@pytest.fixture
def taker(loaded) -> VideoTaker:
    return VideoTaker(loaded["gemma3"]._engine.encoder.processor)


def encoder_of(taker: VideoTaker, **settings: object) -> PromptEncoder:
    return PromptEncoder(taker, "m", check_settings(GeneratorSettings, {"frames_as": "video", **settings}))


def test_a_processor_gets_the_frames_own_times_for_each_video_of_a_prompt(taker):
    for times in (EVEN, UNEVEN):
        assert told(encoder_of(taker), clip(times)) == [times.metadata()]
    parts = (ImagePart(0), ImagePart(2), TextPart("and"), ImagePart(1), ImagePart(3))
    first, second = told(encoder_of(taker), clip(UNEVEN, *parts))
    assert (first["frames_indices"], second["frames_indices"]) == ([30, 90], [45, 300])
    assert first["fps"] == second["fps"] == 25.0


def test_a_batch_that_is_processed_together_keeps_the_times_of_each(taker):
    encoder = encoder_of(taker)
    together = [encoder.encode(clip(times)) for times in (EVEN, UNEVEN)]
    for each in together:
        each.tensors["of_the_whole_batch"] = each.tensors["input_ids"]
    encoder.batch(together)
    _, wanted = taker.given[-1]
    assert wanted["video_metadata"] == [EVEN.metadata(), UNEVEN.metadata()]


def test_video_fps_replaces_the_frames_own_times(taker):
    stated = {"total_num_frames": 4, "fps": 4.0, "frames_indices": [0, 1, 2, 3]}
    assert told(encoder_of(taker, video_fps=4.0), clip(UNEVEN)) == [stated]
    assert told(encoder_of(taker, video_fps=4.0), clip(None)) == [stated]


def test_frames_of_unknown_times_and_a_task_that_miscounts_its_images_are_told_what_to_do(taker):
    with pytest.raises(ValueError, match=r"not known when its frames were filmed.*Fix: .*video_fps"):
        encoder_of(taker).encode(clip(None))
    request = replace(clip(EVEN), times=EVEN.of_images([0, 1]))
    with pytest.raises(ValueError, match=r"4 images, and the times of 2 frames.*Fix: .*image_frames"):
        encoder_of(taker).encode(request)


def test_two_views_of_one_moment_are_not_sent_as_a_video(taker):
    request = clip(FrameTimes(30.0, (7, 7, 7, 7)))
    assert (
        parts_with_clips(request.prompt, request.times, None)
        == parts_with_clips(request.prompt, request.times, 2.0)
        == list(request.prompt.joined_parts)
    )
    [kind] = {part["type"] for part in encoder_of(taker).messages(request)[0]["content"]} - {"text"}
    assert kind == "image"


def test_uneven_frames_before_a_processor_of_one_rate_are_reported_once(taker, caplog):
    taker.model_input_names = ["pixel_values_videos", "second_per_grid_ts"]
    encoder = encoder_of(taker)
    with caplog.at_level(logging.WARNING):
        encoder.encode(clip(EVEN))
        assert caplog.messages == []
        encoder.encode(clip(UNEVEN))
        encoder.encode(clip(UNEVEN))
    (message,) = caplog.messages
    assert "one rate a video, and frames lie at uneven distances" in message
    assert "0.278 a second" in message


def test_a_processor_without_metadata_gets_the_rate_of_the_example(taker):
    taker.model_input_names = ["pixel_values_videos", "video_second_per_grid"]
    encoder = encoder_of(taker)
    encoder.encode(clip(EVEN))
    assert taker.given[-1][1]["fps"] == 1.25
    parts = (ImagePart(0), ImagePart(1), TextPart("and"), ImagePart(2), ImagePart(3))
    with pytest.raises(ValueError, match=r"0\.119, 1\.67 frames a second.*one rate for all videos.*Fix"):
        encoder.encode(clip(UNEVEN, *parts))


def test_ablations_keep_the_times_of_frames_unless_they_hide_the_order():
    assert first_frame(clip(UNEVEN)).times == UNEVEN.of_images([0])
    assert text_only(clip(UNEVEN)).times == UNEVEN.of_images([])
    shuffled = shuffled_frames(clip(UNEVEN))
    assert shuffled.images != clip(UNEVEN).images
    [video, _] = parts_with_clips(shuffled.prompt, shuffled.times, None)
    assert isinstance(video, VideoClip)
    assert video.times == UNEVEN


def test_the_identity_has_the_source_of_times_only_for_videos():
    assert video_settings("images", None) == {}
    own = video_settings("video", None)
    assert own == {"frames_as": "video", "video_times": "own"}
    assert video_settings("video", None, ["second_per_grid_ts"])["video_times"] == "own, one rate a video"
    given = video_settings("video", 2.0)
    assert given["video_times"] == "2.0 a second"
    before = {"frames_as": "video", "video_fps": 2.0}  # what runs were keyed by that told 2 frames a second of all
    assert before not in (own, given)


def test_only_models_that_take_videos_without_a_given_rate_get_the_times_of_an_example():
    with ServedStandIn() as server:
        assert not tells_own_times(load(server).identity)
        assert "frames_as" not in load(server).identity.settings
        assert tells_own_times(load(server, frames_as="video").identity)
        assert not tells_own_times(load(server, frames_as="video", video_fps=2.0).identity)


@pytest.mark.parametrize("table", [ServedSettings, TransformersSettings, VllmSettings])
def test_every_model_that_writes_takes_the_setting(table):
    assert check_settings(table, {"frames_as": "video", "video_fps": 3}).video_fps == 3.0
    assert check_settings(table, {"frames_as": "video"}).video_fps is None
    with pytest.raises(ConfigError, match="frames are sent as images"):
        check_settings(table, {"video_fps": 3})


# vLLM


@pytest.fixture
def engine(folders, monkeypatch, tmp_path):
    monkeypatch.setattr(vllm_model, "WORKER", STANDIN)
    monkeypatch.setenv("STANDIN", str(tmp_path))
    monkeypatch.setattr(vllm_model, "_read_checkpoint", with_videos(vllm_model._read_checkpoint))
    model = VllmModel.load(str(folders["gemma3"]), frames_as="video")
    yield model
    model._engine.close()


def with_videos(read):
    """Gemma 3's processor, with a part for videos and a template that writes them."""

    def reading(folder, settings):
        processor, *others = read(folder, settings)
        processor.video_processor = object()
        processor.chat_template = (
            "{% for m in messages %}{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}"
            "{% else %}<{{ p['type'] }}>{% endif %}{% endfor %}{% endfor %}"
        )
        return processor, *others

    return reading


def test_vllm_gets_a_video_with_the_times_of_its_frames(engine):
    parts = (ImagePart(3), TextPart("then"), ImagePart(0), ImagePart(1), ImagePart(2))
    call = engine._call(0, clip(UNEVEN, *parts), GREEDY)
    assert call.head["prompt"] == "<image>then<video>"
    [video] = call.head["videos"]
    assert video["images"] == [1, 2, 3]
    assert video["metadata"] == {**UNEVEN.of_images([0, 1, 2]).metadata(), "do_sample_frames": False}
    assert engine.identity.settings["video_times"] == "own"
    media = worker._media(call.images, json.loads(json.dumps(call.head["videos"])))
    [(frames, metadata)] = media["video"]
    assert frames.shape == (3, 24, 32, 3)
    assert all((frames[n] == np.asarray(picture(n, (32, 24)))).all() for n in range(3))
    assert metadata["frames_indices"] == [30, 45, 90]
    [image] = media["image"]
    assert (np.asarray(image) == np.asarray(picture(3, (32, 24)))).all()
    assert [type(answer) for [answer] in engine.generate([clip(EVEN)], GREEDY)] == [Completion]


def test_without_a_video_vllm_is_sent_images_as_before(engine):
    call = engine._call(0, replace(clip(None, ImagePart(0), TextPart("a")), images=(picture(0, (32, 24)),)), GREEDY)
    assert call.head["videos"] == []
    assert list(worker._media(call.images, [])) == ["image"]


def test_frames_of_unknown_times_cost_vllm_their_example(engine):
    [[answer]] = engine.generate([clip(None)], GREEDY)
    assert "not known when its frames were filmed" in answer.error


# Servers


@pytest.mark.parametrize("times", [EVEN, UNEVEN])
def test_a_server_is_sent_frames_as_a_video_and_their_times(times):
    request = clip(times)
    [[answer]], [call] = ask(no_fault, [request], GREEDY, frames_as="video", image_format="jpeg")
    assert isinstance(answer, Completion)
    [video, text] = call.body["messages"][-1]["content"]
    assert text == {"type": "text", "text": "What is done?"}
    head, _, data = video["video_url"]["url"].partition(",")
    assert (video["type"], head) == ("video_url", "data:video/jpeg;base64")
    sent = [Image.open(io.BytesIO(base64.b64decode(frame))) for frame in data.split(",")]
    assert [frame.size for frame in sent] == [(32, 24)] * 4
    stated = call.body["media_io_kwargs"]["video"]
    assert stated == {**times.metadata(), "num_frames": -1, "do_sample_frames": False}


def test_stored_jpegs_go_into_a_video_as_they_are():
    request, files = clip(EVEN), []
    for image, kind in zip(request.images, ("JPEG", "JPEG", "PNG", "JPEG"), strict=True):
        buffer = io.BytesIO()
        image.save(buffer, kind)
        files.append(buffer.getvalue())
    _, [call] = ask(no_fault, [replace(request, files=(*files[:3], None))], GREEDY, frames_as="video")
    [video, _] = call.body["messages"][-1]["content"]
    sent = [base64.b64decode(part) for part in video["video_url"]["url"].partition(",")[2].split(",")]
    assert sent[:2] == files[:2]
    assert all(file.startswith(b"\xff\xd8\xff") for file in sent)


def test_a_call_keeps_other_media_settings():
    extra = {"media_io_kwargs": {"image": {"mode": "RGB"}}}
    _, [call] = ask(no_fault, [clip(EVEN)], GREEDY, frames_as="video", extra_body=extra)
    assert call.body["media_io_kwargs"]["image"] == {"mode": "RGB"}
    assert call.body["media_io_kwargs"]["video"]["fps"] == 30.0


def test_frames_as_images_are_sent_as_ever():
    _, [call] = ask(no_fault, [clip(EVEN)], GREEDY)
    assert "media_io_kwargs" not in call.body
    assert [part["type"] for part in call.body["messages"][-1]["content"]] == ["image_url"] * 4 + ["text"]


def test_times_that_a_call_cannot_express_cost_their_example():
    two = clip(UNEVEN, ImagePart(0), ImagePart(1), TextPart("and"), ImagePart(2), ImagePart(3))
    ([unknown], [several], [other]), _ = ask(no_fault, [clip(None), two, clip(EVEN)], GREEDY, frames_as="video")
    assert "not known when its frames were filmed" in unknown.error
    assert "2 videos of different times" in several.error
    assert isinstance(other, Completion)


def test_frames_of_a_video_are_no_png():
    with pytest.raises(ConfigError, match="frames of a video are sent as JPEG"):
        ServedModel.load("m", base_url="http://127.0.0.1:1/v1", frames_as="video", image_format="png")


@pytest.mark.parametrize(
    "message",
    [
        "Per-request media_io_kwargs are disabled by default because they can change multimodal media loading",
        "Invalid value: 'video_url'. Supported values are: 'text' and 'image_url'.",
    ],
)
def test_a_server_without_videos_gets_a_message_with_remedies(message):
    fault = Fault("status", 400, body=json.dumps({"error": {"message": message}}).encode())
    [[answer]], _ = ask(lambda call: fault, [clip(EVEN)], GREEDY, frames_as="video")
    assert message in answer.error
    assert "frames_as=video" in answer.error
    assert "--trust-request-mm-kwargs" in answer.error
