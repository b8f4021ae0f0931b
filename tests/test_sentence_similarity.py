"""Sentence similarity against a computation of its own in plain torch."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from barista_bench.benchmarks.sentence_similarity import SentenceEncoder  # noqa: E402
from barista_bench.errors import ConfigError, DataError, ModelError  # noqa: E402
from barista_bench.files.checkpoints import folder_hash  # noqa: E402
from barista_bench.models.tiny_encoders import TEXT_TOKENS, make_tiny_clip, make_tiny_sentence_encoder  # noqa: E402

WORDS = ["cup", "a cup", "white mug", "milk jug", "the coffee grinder on the table", "", "Kettle", "ketel"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield make_tiny_sentence_encoder(tmp_path_factory.mktemp("sentences") / "tiny")
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def shared(folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(str(folder))


def by_hand(folder: Path, text: str) -> np.ndarray:
    """One sentence alone, so that nothing is padded: the mean of its tokens, at length 1."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    ids = tokenizer(text)["input_ids"][:TEXT_TOKENS]
    with torch.inference_mode():
        hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy().astype(np.float64)
    mean = hidden.mean(axis=0)
    return mean / np.sqrt((mean**2).sum())


def test_cosines_are_those_of_mean_pooled_tokens(folder: Path, shared: SentenceEncoder) -> None:
    vectors = np.stack([by_hand(folder, text) for text in WORDS])
    np.testing.assert_allclose(shared.similarity(WORDS, WORDS[:3]), vectors @ vectors[:3].T, atol=3e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=5), st.lists(st.text(max_size=40), max_size=5))
def test_any_sentences_have_cosines(shared: SentenceEncoder, first: list[str], second: list[str]) -> None:
    found = shared.similarity(first, second)
    assert found.shape == (len(first), len(second))
    assert (np.abs(found) <= 1).all()
    np.testing.assert_array_equal(found, shared.similarity(second, first).T)


def test_a_sentence_is_like_itself(shared: SentenceEncoder) -> None:
    np.testing.assert_array_equal(np.diag(shared.similarity(WORDS, WORDS)), np.ones(len(WORDS)))


def test_cosines_do_not_depend_on_what_else_is_asked(folder: Path) -> None:
    together = SentenceEncoder.load(str(folder)).similarity(WORDS, WORDS)
    narrow = SentenceEncoder.load(str(folder), batch_size=1)
    alone = np.array([[narrow.similarity([a], [b])[0, 0] for b in WORDS] for a in WORDS])
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_embeddings_have_length_one(shared: SentenceEncoder) -> None:
    found = shared.embed(["cup", "jug", "cup"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    np.testing.assert_array_equal(found[0], found[2])
    assert shared.embed([]).shape == (0, found.shape[1])


def test_each_sentence_is_embedded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder.load(str(folder))
    asked: list[str] = []
    inner = encoder._pass
    monkeypatch.setattr(encoder, "_pass", lambda texts: asked.extend(texts) or inner(texts))
    encoder.similarity(["cup", "mug", "cup"], ["jug", "mug"])
    encoder.similarity(["jug"], ["cup", "kettle"])
    assert sorted(asked) == ["cup", "jug", "kettle", "mug"]


def test_the_cache_is_bounded(folder: Path, shared: SentenceEncoder) -> None:
    small = SentenceEncoder(shared._model, shared._tokenizer, "x", None, cache_bytes=8 * 64 * 3)
    small.similarity(WORDS, WORDS)
    assert len(small._kept) == 3


def test_lone_surrogates_and_huge_texts_are_read(shared: SentenceEncoder) -> None:
    assert np.isfinite(shared.similarity(["cup \ud800", "cup " * 200_000], ["cup"])).all()


def test_a_long_sentence_is_cut_at_the_models_limit(shared: SentenceEncoder) -> None:
    assert shared.max_tokens == TEXT_TOKENS
    start = "cup " * 100
    assert shared.similarity([start + "kettle"], [start + "jug"])[0, 0] == 1.0


def test_a_folder_is_known_by_its_content(folder: Path, shared: SentenceEncoder) -> None:
    assert shared.name == str(folder)
    assert shared.revision == folder_hash(folder)


def copied(folder: Path, target: Path) -> Path:
    target.mkdir()
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


@pytest.mark.parametrize(
    "config", [{"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}]
)
def test_an_encoder_that_pools_otherwise_is_refused(folder: Path, tmp_path: Path, config: dict[str, object]) -> None:
    other = copied(folder, tmp_path / "other")
    (other / "1_Pooling").mkdir()
    (other / "1_Pooling" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"1_Pooling/config.json asks for .*cls"):
        SentenceEncoder.load(str(other))


@pytest.mark.parametrize(
    "config", [{"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, {"pooling_mode": "mean"}]
)
def test_what_sentence_transformers_declares_is_kept(folder: Path, tmp_path: Path, config: dict[str, object]) -> None:
    other = copied(folder, tmp_path / "other")
    (other / "1_Pooling").mkdir()
    (other / "1_Pooling" / "config.json").write_text(json.dumps(config))
    (other / "sentence_bert_config.json").write_text('{"max_seq_length": 7}')
    encoder = SentenceEncoder.load(str(other))
    assert encoder.max_tokens == 7
    assert encoder.similarity(["cup " * 9 + "jug"], ["cup " * 9 + "lid"])[0, 0] == 1.0


def test_a_settings_file_that_is_no_json_is_named(folder: Path, tmp_path: Path) -> None:
    other = copied(folder, tmp_path / "other")
    (other / "sentence_bert_config.json").write_text("max_seq_length: 7")
    with pytest.raises(ModelError, match=r"sentence_bert_config.json: is no JSON.*Remedy"):
        SentenceEncoder.load(str(other))


def test_a_model_that_is_no_encoder_of_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"CLIPModel is no encoder of texts alone"):
        SentenceEncoder.load(str(make_tiny_clip(tmp_path / "clip")))


def test_missing_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    other = copied(folder, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    name = next(name for name in sorted(weights) if name.startswith("encoder"))
    save_file({n: w for n, w in weights.items() if n != name}, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="weights are missing"):
        SentenceEncoder.load(str(other))


def test_a_folder_that_is_no_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be loaded.*Remedy"):
        SentenceEncoder.load(str(tmp_path))
    with pytest.raises(ModelError, match=r"^encoder .*gone: there is no such folder"):
        SentenceEncoder.load(str(tmp_path / "gone"))


def test_a_folder_has_no_revision(folder: Path) -> None:
    with pytest.raises(ModelError, match="a folder has no revisions"):
        SentenceEncoder.load(str(folder), "main")


@pytest.mark.parametrize("texts", ["cup", ["cup", 3], [None]])
def test_what_is_no_list_of_sentences_is_refused(shared: SentenceEncoder, texts: object) -> None:
    with pytest.raises(DataError, match=r"no sentences\. Remedy: give a list of strings"):
        shared.similarity(texts, ["cup"])  # type: ignore[arg-type]


def test_a_batch_of_nothing_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="batch_size is 0"):
        SentenceEncoder.load(str(folder), batch_size=0)


def test_a_settings_file_that_cannot_be_fetched_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    from barista_bench.benchmarks import sentence_similarity

    def fails(error: Exception) -> object:
        def fetch(*args: object, **options: object) -> str:
            raise error

        return fetch

    with caplog.at_level(logging.WARNING):
        monkeypatch.setattr(sentence_similarity, "hf_hub_download", fails(EntryNotFoundError("404")))
        assert sentence_similarity._declared_tokens("org/name", None) is None
        assert not caplog.records
        monkeypatch.setattr(sentence_similarity, "hf_hub_download", fails(LocalEntryNotFoundError("offline")))
        assert sentence_similarity._declared_tokens("org/name", None) is None
    assert "sentence_bert_config.json is not at hand" in caplog.text
