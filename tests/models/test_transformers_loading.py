"""The named checkpoint is loaded: a damaged one, a missing library or an ignored setting is an error."""

import hashlib
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from barista_bench import errors  # noqa: E402
from barista_bench.core.boxes import BoxFormat  # noqa: E402
from barista_bench.errors import ConfigError, ModelError  # noqa: E402
from barista_bench.files.checkpoints import folder_hash  # noqa: E402
from barista_bench.models.base import Completion  # noqa: E402
from barista_bench.models.box_formats import box_format_of  # noqa: E402
from barista_bench.models.local.loading import check_limits, quantization_config  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.models.settings import TransformersSettings  # noqa: E402
from tests.models.transformers_kit import GREEDY, change_json, changing_tensors, request_of  # noqa: E402


def test_identity_names_the_content(folders, loaded):
    identity = loaded["gemma3"].identity
    assert identity.name == str(folders["gemma3"])
    assert identity.revision == folder_hash(folders["gemma3"])
    assert identity.settings["dtype"] == "float32"
    named = {"dtype", "attn_implementation", "repetition_penalty", "image_processor", "chat_template"}
    assert identity.settings.keys() == named


@pytest.mark.parametrize("changed", ["model.safetensors", "chat_template.jinja", "tokenizer.json"])
def test_one_changed_byte_changes_the_revision(copy, changed):
    before = folder_hash(copy)
    (copy / "README.md").write_text("no part of the model")
    assert folder_hash(copy) == before
    content = bytearray((copy / changed).read_bytes())
    content[-1] ^= 1
    (copy / changed).write_bytes(content)
    assert folder_hash(copy) != before
    assert len(before) == hashlib.sha256().digest_size * 2


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("gemma3", BoxFormat("yxyx", 1000)),
        ("gemma4", BoxFormat("yxyx", 1000)),
        ("qwen3_vl", BoxFormat("xyxy", 1000)),
        ("llava", BoxFormat()),
    ],
)
def test_the_family_declares_its_boxes(family, expected):
    assert box_format_of(family) == expected


def test_the_users_settings_win_and_are_in_the_identity(folders):
    model = TransformersModel.load(
        str(folders["gemma3"]),
        device="cpu",
        dtype="bfloat16",
        attn_implementation="eager",
        batch_size=2,
        box_format=BoxFormat("xyxy", None),
    )
    assert (model.box_format, model.batch_size, model.window) == (BoxFormat("xyxy", None), 2, 16)
    assert model.identity.settings["dtype"] == "bfloat16"
    assert model.identity.settings["attn_implementation"] == "eager"
    assert model.identity.settings["box_format"] == "xyxy/pixels"
    assert isinstance(model.generate([request_of(0, 1, "cup")], GREEDY)[0][0], Completion)


def test_no_identity_holds_the_batch_size(folders, loaded):
    model = TransformersModel.load(str(folders["gemma3"]), batch_size="auto")
    assert (model.identity, model.batch_size) == (loaded["gemma3"].identity, 8)


def without(name: str):
    return lambda folder: (folder / name).unlink()


def lose_a_tensor(folder: Path) -> None:
    with changing_tensors(folder / "model.safetensors") as tensors:
        tensors.pop(sorted(tensors)[0])


def cut_the_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def break_the_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "no_such_family"}')


def pickle_the_weights(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def split_into_shards(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    first, second = ({name: tensors[name] for name in sorted(tensors)[half::2]} for half in (0, 1))
    (folder / "model.safetensors").unlink()
    files = {"model-00001-of-00002.safetensors": first, "model-00002-of-00002.safetensors": second}
    for name, part in files.items():
        save_file(part, folder / name, metadata={"format": "pt"})
    index = {tensor: name for name, part in files.items() for tensor in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def lose_a_shard(folder: Path) -> None:
    split_into_shards(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def bring_code(folder: Path) -> None:
    code = {"AutoConfig": "configuration_mine.Mine", "AutoModelForImageTextToText": "modeling_mine.Mine"}
    change_json(folder / "config.json", model_type="mine", auto_map=code)
    (folder / "configuration_mine.py").write_text("raise AssertionError('code was run')")


def become_an_adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "org/base"}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (pickle_the_weights, r"no file named model.safetensors.*give its safetensors; .bin weights are pickles"),
        (lose_a_shard, r"model-00002-of-00002.safetensors. Fix: a part of its weights is missing"),
        (cut_the_weights, r"Fix: a part of its weights is missing or damaged: download it again"),
        (bring_code, r"contains custom code.*Fix: read the code that it brings, then set trust_remote_code"),
        (become_an_adapter, r"is an adapter, no model. Fix: give the model that it was trained on, and this one as"),
        *((without(f"{name}.json"), r"copy.*\. Fix: ") for name in ("config", "tokenizer")),
        *((without(name), r"copy.*\. Fix: ") for name in ("model.safetensors", "chat_template.jinja")),
        *((damage, r"copy.*\. Fix: ") for damage in (lose_a_tensor, break_the_config)),
    ],
)
def test_the_cause_of_a_damage_is_named(copy, damage, said):
    damage(copy)
    with pytest.raises(ModelError, match=said):
        TransformersModel.load(str(copy))


def test_weights_in_shards_equal_weights_in_one_file(copy, loaded):
    split_into_shards(copy)
    requests = [request_of(0, 1, "cup")]
    assert TransformersModel.load(str(copy)).generate(requests, GREEDY) == loaded["gemma3"].generate(requests, GREEDY)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"attn_implementation": "flash_attention_2"}, r"FlashAttention2.*Fix: install flash-attn, or leave"),
        ({"attn_implementation": "quick"}, r'"quick"` is not supported.*Fix: leave attn_implementation out'),
        (
            {"device": "cuda"},
            r"device 'cuda': this machine, as torch sees it, has 0 CUDA GPUs. Fix: give --device auto",
        ),
        (
            {"device": "cuda:1"},
            r"device 'cuda:1': this machine, as torch sees it, has 0 CUDA GPUs. Fix: give --device auto",
        ),
        ({"device": "gpu"}, r"device 'gpu': .*Fix: give --device auto, cpu, cuda or cuda:0"),
        ({"quantization": "8bit"}, r"8bit quantisation needs a CUDA GPU. Fix: "),
        ({"max_pixels": 10_000}, r"has no max_pixels. Fix: leave it out"),
        ({"revision": "main"}, "a folder has no revisions"),
    ],
)
def test_an_error_names_the_missing_part_of_the_machine_or_checkpoint(folders, monkeypatch, settings, said):
    monkeypatch.setattr(errors, "find_spec", lambda _: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match=said):
        TransformersModel.load(str(folders["gemma3"]), **settings)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"nowhere: there is no such folder. Fix: check the path"):
        TransformersModel.load(str(tmp_path / "nowhere"))


def test_missing_libraries_name_the_extra(monkeypatch, folders):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModelError, match=r"pip install '?barista_bench\[run\]"):
        TransformersModel.load(str(folders["gemma3"]))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        *(({"batch_size": value}, "batch_size") for value in (0, "some")),
        *(({"frames_as": "gif"}, "frames_as"), ({"min_pixels": 0}, "min_pixels")),
        *(({"video_fps": 2.0}, "video_fps"), ({"video_fps": -1.0, "frames_as": "video"}, "video_fps")),
        ({"min_pixels": 9, "max_pixels": 3}, "min_pixels"),
        ({"think_tags": ("<think>", "")}, "think_tags"),
        ({"quantization": "3bit"}, "quantization: .*'4bit' or '8bit', got '3bit'"),
    ],
)
def test_settings_out_of_range_are_refused_before_weights_are_read(monkeypatch, folders, settings, named):
    from barista_bench.models.local import model as transformers_model

    monkeypatch.setattr(transformers_model, "load_checkpoint", lambda *_: pytest.fail("read the weights"))
    with pytest.raises(ConfigError, match=rf"{named}.*Fix: "):
        TransformersModel.load(str(folders["gemma3"]), **settings)


def test_importing_the_models_is_cheap():
    code = (
        "import sys, barista_bench.models; "
        "import barista_bench.models.local.model, barista_bench.models.tiny; "
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def qwen_images(**limits: int):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    return Qwen2VLImageProcessorPil(**limits)


def test_pixel_limits_that_a_processor_took_are_accepted():
    limits = {"min_pixels": 56 * 56, "max_pixels": 280 * 280}
    processor = qwen_images(**limits)
    check_limits("qwen", processor, limits)
    grid = processor(images=[request_of(3, 3, "").images[2].resize((1920, 1080))])["image_grid_thw"]
    assert int(grid[0].prod() if hasattr(grid[0], "prod") else grid[0][1] * grid[0][2]) * 14 * 14 <= 280 * 280


def test_pixel_limits_that_a_processor_did_not_take_are_refused():
    with pytest.raises(ModelError, match=r"did not take max_pixels=1000. Fix: leave it out"):
        check_limits("qwen", qwen_images(), {"max_pixels": 1000})


def test_quantisation_without_bitsandbytes_is_refused(folders, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == "bitsandbytes" else find_spec(name))
    with pytest.raises(ModelError, match=r"4bit quantisation needs bitsandbytes\. Fix: .*\[quantization\]"):
        TransformersModel.load(str(folders["gemma3"]), quantization="4bit")


def test_quantisation_settings_on_a_gpu(folders, copy, monkeypatch):
    """As far as they can be seen without one: what transformers would be told."""
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0" if name == "bitsandbytes" else version(name))
    monkeypatch.setattr(errors, "find_spec", lambda _: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    four = quantization_config(str(folders["gemma3"]), TransformersSettings(quantization="4bit"))
    assert (four.load_in_4bit, four.bnb_4bit_quant_type, four.bnb_4bit_compute_dtype) == (True, "nf4", torch.bfloat16)
    eight = quantization_config(str(folders["gemma3"]), TransformersSettings(quantization="8bit"))
    assert (eight.load_in_8bit, eight.load_in_4bit) == (True, False)
    change_json(copy / "config.json", quantization_config={"quant_method": "awq", "bits": 4})
    with pytest.raises(ModelError, match="quantised already"):
        quantization_config(str(copy), TransformersSettings(quantization="4bit"))
