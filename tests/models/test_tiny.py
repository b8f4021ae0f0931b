"""Tiny models are real, reproducible, and never left half written."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models import tiny  # noqa: E402
from tests.tiny_architectures import make_tiny_model  # noqa: E402


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module", params=["gemma3", "llava", "idefics3"])
def made(request, tmp_path_factory):
    torch.set_num_threads(1)
    return request.param, make_tiny_model(tmp_path_factory.mktemp("made") / "model", request.param)


def test_the_auto_classes_load_a_tiny_model_whose_weights_are_not_zero(made):
    """A weight of zeros cuts the images off (gemma3's projector starts so)."""
    architecture, folder = made
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    assert model.config.model_type == architecture
    assert processor.tokenizer.padding_side == "left"
    assert processor.chat_template
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
    assert [name for name, value in model.named_parameters() if value.ndim > 1 and not value.any()] == []


def test_the_same_seed_makes_the_same_bytes_and_leaves_the_random_state(made, tmp_path):
    architecture, folder = made
    torch.manual_seed(123)
    before = torch.get_rng_state()
    again = make_tiny_model(tmp_path / "again", architecture)
    assert torch.equal(torch.get_rng_state(), before)
    assert content(again) == content(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["again"]


def test_another_seed_makes_other_weights(made, tmp_path):
    architecture, folder = made
    other = content(make_tiny_model(tmp_path / "other", architecture, seed=1))
    assert other["model.safetensors"] != content(folder)["model.safetensors"]
    assert other["tokenizer.json"] == content(folder)["tokenizer.json"]


def test_a_finished_folder_is_used_again(made, monkeypatch):
    architecture, folder = made
    monkeypatch.setattr(tiny, "_build", lambda *_: pytest.fail("built again"))
    assert make_tiny_model(folder, architecture) == folder


@pytest.mark.parametrize("change", [{"seed": 7}, {"recipe": 0}, {"transformers": "4.0"}, {"architecture": "x"}])
def test_a_folder_of_other_settings_is_replaced(tmp_path, change):
    folder = make_tiny_model(tmp_path / "model", "llava")
    expected = content(folder)
    marker = folder / "tiny_model.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | change))
    (folder / "config.json").write_text("{}")
    assert content(make_tiny_model(folder, "llava")) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_foreign_files_are_kept(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="holds files that are no tiny model"):
        make_tiny_model(tmp_path)
    assert content(tmp_path) == {"notes.txt": b"mine"}


def test_an_interrupted_build_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(folder, *_):
        folder.mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(tiny, "_build", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_tiny_model(tmp_path / "model", "llava")
    assert list(tmp_path.iterdir()) == []


def test_the_model_that_another_process_made_first_is_kept(tmp_path, monkeypatch):
    build = tiny._build
    folder = tmp_path / "model"

    def build_beside_another(scratch, builder, seed):
        with monkeypatch.context() as patched:
            patched.setattr(tiny, "_build", build)
            make_tiny_model(folder, "llava", seed)
        build(scratch, builder, seed)

    monkeypatch.setattr(tiny, "_build", build_beside_another)
    assert make_tiny_model(folder, "llava") == folder
    assert (folder / "model.safetensors").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
