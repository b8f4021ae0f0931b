"""Sentence similarity: sentence-transformers itself defines the embeddings."""

import builtins
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sentence_transformers = pytest.importorskip("sentence_transformers")

from sentence_transformers import SentenceTransformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer  # noqa: E402

from barista_bench.benchmarks import sentence_similarity  # noqa: E402
from barista_bench.benchmarks.sentence_similarity import SentenceEncoder  # noqa: E402
from barista_bench.errors import DataError, ModelError  # noqa: E402
from barista_bench.files.checkpoints import folder_hash  # noqa: E402
from barista_bench.models.tiny import TEXT_TOKENS, make_tiny_clip  # noqa: E402
from tests.tiny_architectures import make_tiny_sentence_encoder  # noqa: E402

WORDS = ["cup", "a cup", "white mug", "milk jug", "the coffee grinder on the table", "", "Kettle", "ketel"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield make_tiny_sentence_encoder(tmp_path_factory.mktemp("sentences") / "tiny")
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def shared(folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(str(folder), device="cpu")


def plain(folder: Path, saved: Path) -> Path:
    return folder


def dense(folder: Path, saved: Path) -> Path:
    torch.manual_seed(3)
    modules = [Transformer(str(folder)), Pooling(64, "mean"), Dense(64, 16)]
    SentenceTransformer(modules=modules).save(str(saved))
    return saved


def prompted(folder: Path, saved: Path) -> Path:
    modules = [Transformer(str(folder)), Pooling(64, "mean")]
    prompts = {"name": "the name of a thing: "}
    SentenceTransformer(modules=modules, prompts=prompts, default_prompt_name="name").save(str(saved))
    return saved


def pooled_by_cls(folder: Path, saved: Path) -> Path:
    """The pooling in a folder of another name."""
    SentenceTransformer(modules=[Transformer(str(folder)), Pooling(64, "cls")]).save(str(saved))
    (saved / "1_Pooling").rename(saved / "7_Pooling")
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["path"] = "7_Pooling"
    (saved / "modules.json").write_text(json.dumps(modules))
    return saved


@pytest.mark.parametrize("make", [plain, dense, prompted, pooled_by_cls])
def test_cosines_equal_the_models_own_modules(
    folder: Path, tmp_path: Path, make: object, shared: SentenceEncoder
) -> None:
    saved = make(folder, tmp_path / "saved")  # type: ignore[operator]
    reference = SentenceTransformer(str(saved), device="cpu")
    vectors = np.stack([reference.encode(text, normalize_embeddings=True) for text in WORDS]).astype(np.float64)
    encoder = SentenceEncoder.load(str(saved), device="cpu")
    np.testing.assert_allclose(encoder.similarity(WORDS, WORDS[:3]), vectors @ vectors[:3].T, atol=3e-6)
    assert encoder.revision == folder_hash(saved)
    differs = np.abs(encoder.similarity(WORDS, WORDS) - shared.similarity(WORDS, WORDS)).max() > 0.01
    assert differs == (make is not plain)


def test_cosines_do_not_depend_on_other_requests(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = SentenceEncoder.load(str(folder), device="cpu").similarity(WORDS, WORDS)
    again = SentenceEncoder.load(str(folder), device="cpu").similarity(WORDS, WORDS)
    np.testing.assert_array_equal(together, again)
    monkeypatch.setattr(sentence_similarity, "BATCH_SIZE", 1)
    narrow = SentenceEncoder.load(str(folder), device="cpu")
    alone = np.array([[narrow.similarity([a], [b])[0, 0] for b in WORDS] for a in WORDS])
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_each_sentence_is_embedded_once_and_few_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder.load(str(folder), device="cpu")
    asked: list[str] = []
    encode = encoder.model.encode
    monkeypatch.setattr(encoder.model, "encode", lambda texts, **more: asked.extend(texts) or encode(texts, **more))
    encoder.similarity(["cup", "mug", "cup"], ["jug", "mug"])
    encoder.similarity(["jug"], ["cup", "kettle"])
    assert sorted(asked) == ["cup", "jug", "kettle", "mug"]
    monkeypatch.setattr(sentence_similarity, "MAX_CACHED", 3)
    encoder.embed(WORDS)
    assert not encoder._embeddings


def test_odd_texts_are_read_long_ones_cut_at_the_models_limit_and_others_refused(shared: SentenceEncoder) -> None:
    assert np.isfinite(shared.similarity(["cup \ud800", "cup " * 200_000], ["cup"])).all()
    assert shared.model.max_seq_length == TEXT_TOKENS
    start = "cup " * 100
    assert shared.similarity([start + "kettle"], [start + "jug"])[0, 0] == 1.0
    for texts in ("cup", ["cup", 3], [None]):
        with pytest.raises(DataError, match=r"no sentences\. Fix: give a list of strings"):
            shared.similarity(texts, ["cup"])  # type: ignore[arg-type]


def test_missing_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    incomplete = pooled_by_cls(folder, tmp_path / "incomplete")
    weights = load_file(incomplete / "model.safetensors")
    lost = next(name for name in sorted(weights) if name.startswith("encoder"))
    rest = {name: weight for name, weight in weights.items() if name != lost}
    save_file(rest, incomplete / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="weights are missing"):
        SentenceEncoder.load(str(incomplete))


def test_a_folder_that_is_no_encoder_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be loaded.*Fix"):
        SentenceEncoder.load(str(tmp_path))
    with pytest.raises(ModelError, match=r"^encoder .*gone: there is no such folder"):
        SentenceEncoder.load(str(tmp_path / "gone"))
    with pytest.raises(ModelError, match="a folder has no revisions"):
        SentenceEncoder.load(str(folder), "main")
    with pytest.raises(ModelError, match=r"CLIPModel is not a text-only encoder"):
        SentenceEncoder.load(str(make_tiny_clip(tmp_path / "clip")))
    broken = pooled_by_cls(folder, tmp_path / "broken")
    (broken / "modules.json").write_text("[{")
    with pytest.raises(ModelError, match=r"^encoder .*broken: cannot be loaded: .*Fix"):
        SentenceEncoder.load(str(broken))


def test_no_code_of_an_encoder_is_run(folder: Path, tmp_path: Path) -> None:
    saved = pooled_by_cls(folder, tmp_path / "saved")
    (saved / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["type"] = "evil.Evil"
    (saved / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match="cannot be loaded"):
        SentenceEncoder.load(str(saved))
    assert not (tmp_path / "ran").exists()


def test_the_missing_library_is_named_with_its_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *args: object, **more: object) -> object:
        if name.startswith("sentence_transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return imported(name, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelError, match=r"needs sentence-transformers .*pip install '?barista_bench\[sentence\]"):
        SentenceEncoder.load(str(folder))
