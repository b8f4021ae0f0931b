"""A LoRA adapter changes the answers as peft itself would, or is refused: never ignored, never unpickled."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from tests.models.transformers_kit import (  # noqa: E402
    GREEDY,
    alike,
    change_json,
    changing_tensors,
    mixed_requests,
    texts,
    written_tokens,
)


def trained(folder: Path, into: Path) -> Path:
    """An adapter with weights that matter, saved by peft."""
    base = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        config = peft.LoraConfig(r=4, lora_alpha=16, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        peft.get_peft_model(base, config).save_pretrained(into)
    return into


@pytest.fixture(scope="module")
def adapter(folders, tmp_path_factory):
    return trained(folders["gemma3"], tmp_path_factory.mktemp("adapters") / "gemma3")


@pytest.fixture
def copied(adapter, tmp_path):
    return Path(shutil.copytree(adapter, tmp_path / "adapter"))


def test_answers_equal_peft_and_not_the_bare_model(folders, adapter, loaded, monkeypatch):
    model = TransformersModel.load(str(folders["gemma3"]), adapter=str(adapter))
    rows, requests = written_tokens(monkeypatch), mixed_requests()
    base = transformers.AutoModelForImageTextToText.from_pretrained(folders["gemma3"])
    reference = peft.PeftModel.from_pretrained(base, adapter).merge_and_unload().eval()
    for request in requests:
        model.generate([request], GREEDY)
        inputs = model._engine.encoder.encode(request).tensors
        made = reference.generate(**inputs, max_new_tokens=GREEDY.max_new_tokens, do_sample=False)
        assert rows[-1] == made[0, inputs["input_ids"].shape[1] :].tolist()
    assert texts(model.generate(requests, GREEDY)) != texts(loaded["gemma3"].generate(requests, GREEDY))


def test_batches_with_an_adapter_equal_single_requests(folders, adapter):
    model = TransformersModel.load(str(folders["gemma3"]), adapter=str(adapter))
    requests, config = mixed_requests(seeds=(1, 2)), replace(GREEDY, temperature=0.7)
    alone = [model.generate([request], config)[0] for request in requests]
    assert alike(model.generate(requests, config)) == alike(alone)


def test_the_content_of_the_adapter_is_part_of_the_identity(folders, copied):
    def identity():
        return TransformersModel.load(str(folders["gemma3"]), adapter=str(copied)).identity

    before = identity()
    assert len(before.settings["adapter"]) == 64
    (copied / "README.md").write_text("no part of it")
    assert identity() == before
    with changing_tensors(copied / "adapter_model.safetensors") as tensors:
        tensors[sorted(tensors)[0]] += 1e-3
    assert identity() != before


def test_pickled_weights_are_refused_unread(folders, copied):
    (copied / "adapter_model.safetensors").unlink()
    (copied / "adapter_model.bin").write_bytes(b"would run code")
    with pytest.raises(ModelError, match=r"holds no adapter_model.safetensors. Fix: save it with peft"):
        TransformersModel.load(str(folders["gemma3"]), adapter=str(copied))


def drop_a_tensor(folder: Path) -> None:
    with changing_tensors(folder / "adapter_model.safetensors") as tensors:
        tensors.pop(sorted(tensors)[0])


def rename_a_tensor(folder: Path) -> None:
    with changing_tensors(folder / "adapter_model.safetensors") as tensors:
        tensors["base_model.model.nowhere.lora_A.weight"] = tensors[sorted(tensors)[0]].clone()


def change_the_rank(folder: Path) -> None:
    change_json(folder / "adapter_config.json", r=8)


def cut_the_weights(folder: Path) -> None:
    content = (folder / "adapter_model.safetensors").read_bytes()
    (folder / "adapter_model.safetensors").write_bytes(content[: len(content) // 2])


def aim_at_nothing(folder: Path) -> None:
    change_json(folder / "adapter_config.json", target_modules=["no_such_layer"])


@pytest.mark.parametrize("damage", [drop_a_tensor, rename_a_tensor, change_the_rank, cut_the_weights, aim_at_nothing])
def test_an_adapter_that_does_not_fit_is_refused(folders, copied, damage):
    damage(copied)
    with pytest.raises(ModelError, match=r"adapter .*Fix: "):
        TransformersModel.load(str(folders["gemma3"]), adapter=str(copied))


def test_an_adapter_of_another_model_is_refused(folders, adapter):
    with pytest.raises(ModelError, match=r"adapter .*Fix: give the model that the adapter was trained on"):
        TransformersModel.load(str(folders["idefics3"]), adapter=str(adapter))


def test_a_folder_has_no_revisions(folders, adapter):
    with pytest.raises(ModelError, match="a folder has no revisions"):
        TransformersModel.load(str(folders["gemma3"]), adapter=str(adapter), adapter_revision="main")


def test_an_adapter_that_cannot_be_found_is_named(folders, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"no/such_adapter: is not a folder and cannot be fetched"):
        TransformersModel.load(str(folders["gemma3"]), adapter="no/such_adapter")


def test_a_missing_peft_is_named(folders, adapter, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelError, match=r"needs peft\. Fix: pip install '?barista_bench\[peft\]"):
        TransformersModel.load(str(folders["gemma3"]), adapter=str(adapter))
