"""Without torchvision, images reach the families whose processor has a part for videos; what cannot be read says so."""

from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.core.settings import check_settings  # noqa: E402
from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models.base import Completion  # noqa: E402
from barista_bench.models.local import loading  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.models.settings import TransformersSettings  # noqa: E402
from tests.models.transformers_kit import GREEDY, mixed_requests, texts  # noqa: E402

without_torchvision = pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is installed")


@without_torchvision
@pytest.mark.parametrize(
    ("model_type", "image_processor"),
    [
        ("qwen2_5_vl", "Qwen2VLImageProcessorPil"),
        pytest.param("qwen3_vl", "Qwen2VLImageProcessorPil", marks=pytest.mark.full),
        ("internvl", "GotOcr2ImageProcessorPil"),
        pytest.param("glm4v", "Glm4vImageProcessorPil", marks=pytest.mark.full),
        pytest.param("mistral3", "PixtralImageProcessorPil", marks=pytest.mark.full),
        pytest.param("llava_onevision", "LlavaOnevisionImageProcessorPil", marks=pytest.mark.full),
    ],
)
def test_images_need_no_torchvision(zoo, model_type, image_processor):
    model = TransformersModel.load(zoo(model_type))
    assert model.identity.settings["image_processor"] == image_processor
    requests = mixed_requests()
    answers = model.generate(requests, GREEDY)
    assert all(isinstance(answer, Completion) for [answer] in answers)
    encoder = model._engine.encoder
    encoded = encoder.encode(requests[1])
    placeholder = encoder.processor.image_token_id
    assert int((encoded.tensors["input_ids"] == placeholder).sum()) >= 3
    assert len({text for [text] in texts(answers)}) == 4


@without_torchvision
@pytest.mark.parametrize("model_type", ["llama4", "lfm2_vl", "kimi_k25", "instructblipvideo"])
def test_families_that_need_torchvision_name_the_extra(zoo, model_type):
    with pytest.raises(ModelError, match=rf"{model_type}: its processor needs torchvision.*\[video\]"):
        TransformersModel.load(zoo(model_type))


@without_torchvision
def test_videos_without_torchvision_name_the_extra(zoo):
    with pytest.raises(ModelError, match=r"its processor of videos needs torchvision.*\[video\]"):
        TransformersModel.load(zoo("qwen2_5_vl"), frames_as="video")


def test_a_given_chat_template_replaces_a_processors_template_for_videos(zoo, tmp_path):
    """SmolVLM's takes that one in the place of the checkpoint's, which is then as transformers has it."""
    content = [{"type": "video"}, {"type": "text", "text": "What?"}]
    written = {}
    for name, given in {"own": {}, "given": {"chat_template": tmp_path / "template.jinja"}}.items():
        (tmp_path / "template.jinja").write_text("{% for m in messages %}MINE <video>{% endfor %}")
        table = check_settings(TransformersSettings, given)
        shared = {"revision": "main", "trust_remote_code": False}
        processor = loading._processor(zoo("smolvlm"), table, **shared)
        written[name] = processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
    assert written["given"] == "MINE <video>"
    assert "User:" in written["own"]
