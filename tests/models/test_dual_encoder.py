"""Dual encoders against transformers' own results, through every kind of request."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cachetools import LRUCache
from PIL import Image

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from barista_bench.core.prompt import Prompt, TextPart  # noqa: E402
from barista_bench.errors import ConfigError, ModelError  # noqa: E402
from barista_bench.files.checkpoints import folder_hash  # noqa: E402
from barista_bench.models import Completion, Request  # noqa: E402
from barista_bench.models.dual_encoders.model import DualEncoder, pixels_key  # noqa: E402
from barista_bench.models.dual_encoders.towers import spread_indices  # noqa: E402
from barista_bench.models.tiny import TEXT_TOKENS, make_tiny_clip  # noqa: E402
from tests.models.dual_encoder_kit import CHOICES, CONFIG, ask, picture, request, scores  # noqa: E402
from tests.models.transformers_kit import changing_tensors  # noqa: E402
from tests.tiny_architectures import VIDEO_FRAMES, make_tiny_sentence_encoder, make_tiny_siglip, make_tiny_xclip  # noqa: E402

MAKERS = {"clip": make_tiny_clip, "siglip": make_tiny_siglip, "xclip": make_tiny_xclip}


@pytest.fixture(scope="session")
def encoders(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("encoders")
    return {name: make(root / name) for name, make in MAKERS.items()}


@pytest.fixture(scope="session")
def theirs(encoders: dict[str, Path]) -> dict[str, tuple[object, object]]:
    """Model and processor as transformers loads them: the reference."""
    return {
        name: (
            transformers.AutoModel.from_pretrained(folder).eval(),
            transformers.AutoProcessor.from_pretrained(folder),
        )
        for name, folder in encoders.items()
    }


@pytest.fixture(params=sorted(MAKERS))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def encoder(encoders: dict[str, Path], family: str) -> DualEncoder:
    return DualEncoder.load(str(encoders[family]))


@pytest.fixture
def clip(encoders: dict[str, Path]) -> DualEncoder:
    return DualEncoder.load(str(encoders["clip"]))


def tokens(processor: object, texts: Sequence[str], padding: str | bool) -> dict[str, object]:
    return dict(
        processor.tokenizer(  # type: ignore[attr-defined]
            list(texts), padding=padding, truncation=True, max_length=TEXT_TOKENS, return_tensors="pt"
        )
    )


@pytest.mark.parametrize(("name", "padding"), [("clip", True), ("siglip", "max_length")])
def test_one_image_scores_as_the_models_own_logits(
    encoders: dict[str, Path], theirs: dict[str, tuple[object, object]], name: str, padding: str | bool
) -> None:
    model, processor = theirs[name]
    pixels = processor.image_processor(images=[picture(3)], return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        output = model(**tokens(processor, CHOICES.values(), padding), pixel_values=pixels)
        bias = getattr(model, "logit_bias", torch.zeros(1))
        expected = (output.logits_per_image[0] - bias) / model.logit_scale.exp()
    (answer,) = ask(DualEncoder.load(str(encoders[name])), request("a", [3]))
    np.testing.assert_allclose(list(scores(answer).values()), expected, atol=2e-6)


def test_x_clip_scores_as_the_models_own_logits(
    encoders: dict[str, Path], theirs: dict[str, tuple[object, object]]
) -> None:
    model, processor = theirs["xclip"]
    frames = [picture(seed) for seed in range(VIDEO_FRAMES)]
    pixels = processor.image_processor(images=frames, return_tensors="pt")["pixel_values"].unsqueeze(0)
    with torch.inference_mode():
        output = model(**tokens(processor, CHOICES.values(), True), pixel_values=pixels)
        expected = output.logits_per_video[0] / model.logit_scale.exp()
    first, other = ask(
        DualEncoder.load(str(encoders["xclip"])), request("a", range(VIDEO_FRAMES)), request("b", range(4, 8))
    )
    np.testing.assert_allclose(list(scores(first).values()), expected, atol=2e-6)
    assert scores(other) != scores(first)


@pytest.mark.parametrize("unit_frames", [True, False])
def test_a_video_is_the_mean_of_its_frames(
    encoders: dict[str, Path], theirs: dict[str, tuple[object, object]], unit_frames: bool
) -> None:
    model, processor = theirs["clip"]
    with torch.inference_mode():
        rows = []
        for seed in range(5):
            pixels = processor.image_processor(images=[picture(seed)], return_tensors="pt")
            row = model.get_image_features(**pixels).pooler_output[0].double()
            rows.append(row / row.norm() if unit_frames else row)
        texts = model.get_text_features(**tokens(processor, CHOICES.values(), True)).pooler_output.double()
        video = sum(rows) / len(rows)
        expected = [float(video @ text / video.norm() / text.norm()) for text in texts]
    encoder = DualEncoder.load(str(encoders["clip"]), unit_frames=unit_frames)
    (answer,) = ask(encoder, request("a", range(5)))
    np.testing.assert_allclose(list(scores(answer).values()), expected, atol=2e-6)


def test_a_bag_of_frames_cannot_tell_permutations_apart_and_a_video_model_can(
    encoder: DualEncoder, family: str
) -> None:
    orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]]
    answers = ask(encoder, *(request(str(order), order) for order in orders))
    texts = [answer.text for answer in answers if isinstance(answer, Completion)]
    assert (len(texts), len(set(texts))) == (3, 3 if family == "xclip" else 1)


def test_an_answer_does_not_depend_on_other_requests(encoders: dict[str, Path], family: str) -> None:
    requests = [request(str(first), range(first, first + 4)) for first in range(6)]
    together = ask(DualEncoder.load(str(encoders[family])), *requests)
    narrow = DualEncoder.load(str(encoders[family]))
    narrow.images_at_once = 3
    alone = [ask(narrow, request)[0] for request in reversed(requests)][::-1]
    for batched, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(list(scores(batched).values()), list(scores(other).values()), atol=2e-6)


def test_every_seed_has_the_same_answer_and_order_is_kept(encoder: DualEncoder) -> None:
    asked = [request("a", [0, 1, 2, 3], seeds=(1, 2, 3)), request("b", [4, 5, 6, 7])]
    rows = encoder.generate(asked, CONFIG)
    assert [len(row) for row in rows] == [3, 1]
    assert len({answer.text for answer in rows[0] if isinstance(answer, Completion)}) == 1
    assert rows[1][0] == ask(encoder, asked[1])[0]


class Counting:
    """Wraps a method of the towers and keeps its requests."""

    def __init__(self, encoder: DualEncoder, name: str, monkeypatch: pytest.MonkeyPatch, fits: int = 1000) -> None:
        self.inner = getattr(encoder._towers, name)
        self.fits = fits
        self.sizes: list[int] = []
        monkeypatch.setattr(encoder._towers, name, self)

    def __call__(self, items: Sequence[object]) -> object:
        self.sizes.append(len(items))
        if len(items) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.inner(items)


def test_each_distinct_frame_and_text_is_embedded_once(clip: DualEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, texts = Counting(clip, "embed", monkeypatch), Counting(clip, "embed_texts", monkeypatch)
    ask(clip, request("a", [0, 1, 2, 1]), request("b", [2, 3], {"X": CHOICES["A"], "Y": "another text"}))
    ask(clip, request("c", [0, 3, 1]))
    assert sum(frames.sizes) == 4
    assert sum(texts.sizes) == 4


def test_a_video_is_embedded_once_for_all_its_questions(
    encoders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = DualEncoder.load(str(encoders["xclip"]))
    videos = Counting(encoder, "embed", monkeypatch)
    ask(encoder, request("a", [0, 1, 2, 3]), request("b", [0, 1, 2, 3], {"X": "holding a cup"}))
    ask(encoder, request("c", [0, 1, 2, 3]))
    assert videos.sizes == [1]


@pytest.mark.parametrize("kept", [0, 3])
def test_embeddings_that_the_cache_cannot_hold_are_made_again(
    clip: DualEncoder, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    expected = ask(clip, request("a", range(4)))
    clip._cache = LRUCache(kept * 32 * 4, getsizeof=lambda embedding: embedding.nbytes)
    frames = Counting(clip, "embed", monkeypatch)
    assert ask(clip, request("a", range(4))) == ask(clip, request("a", range(4))) == expected
    assert sum(frames.sizes) == 8


def test_images_are_embedded_in_batches_over_requests(clip: DualEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = Counting(clip, "embed", monkeypatch)
    clip.images_at_once = 4
    ask(clip, *(request(str(first), range(first, first + 3)) for first in range(0, 9, 3)))
    assert frames.sizes == [4, 4, 1]


def test_out_of_memory_halves_the_batch(
    clip: DualEncoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = ask(clip, request("a", range(9)))
    clip._cache = LRUCache(2**20, getsizeof=lambda embedding: embedding.nbytes)
    frames = Counting(clip, "embed", monkeypatch, fits=2)
    with caplog.at_level(logging.WARNING):
        answers = ask(clip, request("a", range(9)))
    np.testing.assert_allclose(list(scores(answers[0]).values()), list(scores(expected[0]).values()), atol=2e-6)
    assert frames.sizes == [9, 4, 2, 2, 2, 2, 1]
    assert clip.images_at_once == 2
    assert "out of memory: 4 images or texts at once" in caplog.text


def test_an_image_that_does_not_fit_and_a_bad_embedding_are_failures(clip, monkeypatch):
    Counting(clip, "embed", monkeypatch, fits=0)
    (answer,) = ask(clip, request("a", [0, 1]))
    assert answer.error.startswith("a: does not fit into memory. Fix:")
    monkeypatch.setattr(clip._towers, "embed", lambda units: [torch.zeros(1, 32) for _ in units])
    (answer,) = ask(clip, request("a", [0]))
    assert "zero or not finite" in answer.error


def test_another_runtime_error_is_not_taken_for_memory(clip: DualEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(units: object) -> object:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(clip._towers, "embed", broken)
    with pytest.raises(RuntimeError, match="mat1"):
        ask(clip, request("a", [0]))


def test_only_requests_that_cannot_be_scored_fail(encoder: DualEncoder) -> None:
    blind = Request("b", Prompt("", (TextPart("Which?"),)), (), choices=CHOICES)
    no_texts, no_images, good = ask(encoder, request("a", [0], {}), blind, request("c", [0, 1, 2, 3]))
    assert no_texts.error.startswith("a: a dual encoder ranks given texts, but got none. Fix:")
    assert no_images.error == "b: a dual encoder compares texts with images, but got no images"
    assert scores(good)


def test_a_prompt_that_misplaces_its_images_is_the_callers_error(clip) -> None:
    wrong = Request("a", Prompt("", (TextPart("Which?"),)), (picture(0),), choices=CHOICES)
    with pytest.raises(ValueError, match="request a: the prompt places images"):
        clip.generate([wrong], CONFIG)


def test_a_batch_size_below_1_is_refused(encoders) -> None:
    with pytest.raises(ConfigError, match="Fix"):
        DualEncoder.load(str(encoders["clip"]), batch_size=0)


def test_a_text_past_the_limit_is_cut_there_and_said_once(clip: DualEncoder, caplog: pytest.LogCaptureFixture) -> None:
    long = {"A": "pouring " * 100 + "milk", "B": "pouring " * 100 + "coffee", "C": "pouring"}
    with caplog.at_level(logging.WARNING):
        (answer,) = ask(clip, request("a", [0], long))
        ask(clip, request("b", [1], long))
    read = scores(answer, long)
    assert read["A"] == read["B"] != read["C"]
    assert caplog.text.count(f"only the first {TEXT_TOKENS} tokens are read of") == 2
    assert clip.identity.settings["text_tokens"] == TEXT_TOKENS


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_video_model_spreads_its_number_of_frames_over_the_given_ones(encoders: dict[str, Path], count: int) -> None:
    encoder = DualEncoder.load(str(encoders["xclip"]))
    assert encoder.identity.settings["frames"] == VIDEO_FRAMES
    taken = [list(range(count))[index] for index in spread_indices(count, VIDEO_FRAMES)]
    whole, part = ask(encoder, request("a", range(count)), request("b", taken))
    assert scores(whole) == scores(part)


def test_the_identity_names_what_changes_scores(encoders: dict[str, Path]) -> None:
    folder = encoders["siglip"]
    identity = DualEncoder.load(str(folder)).identity
    assert identity.name == f"dual:{folder}"
    assert identity.revision == folder_hash(folder)
    assert identity.settings["dtype"] == "float32"
    assert identity.settings["sees"] == "frames"
    half = DualEncoder.load(str(folder), dtype="bfloat16").identity
    assert half.settings["dtype"] == "bfloat16"


def test_a_model_without_two_towers_is_refused(one_thread: None, tmp_path: Path) -> None:
    from barista_bench.models.tiny import make_tiny_model

    with pytest.raises(ModelError, match=r"has no tower of texts. Fix: name a dual encoder"):
        DualEncoder.load(str(make_tiny_model(tmp_path / "vlm")))
    with pytest.raises(ModelError, match="has no tower of texts"):
        DualEncoder.load(str(make_tiny_sentence_encoder(tmp_path / "sentences")))


def test_missing_weights_are_refused(tmp_path: Path) -> None:
    folder = make_tiny_clip(tmp_path / "clip")
    with changing_tensors(folder / "model.safetensors") as weights:
        del weights["text_projection.weight"]
    with pytest.raises(ModelError, match=r"weights are missing \(text_projection.weight"):
        DualEncoder.load(str(folder))


def test_the_tiny_encoders_are_equal_every_time(tmp_path: Path, family: str) -> None:
    state = torch.random.get_rng_state()
    first, second = (MAKERS[family](tmp_path / name) for name in "ab")
    assert folder_hash(first) == folder_hash(second)
    assert folder_hash(MAKERS[family](tmp_path / "c", seed=1)) != folder_hash(first)
    assert torch.equal(state, torch.random.get_rng_state())


def test_the_catalog_makes_the_tiny_one_and_names_it_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from barista_bench.runs.ask import catalog
    from barista_bench.runs.ask.config import ModelSettings

    monkeypatch.setattr(catalog, "HF_HOME", str(tmp_path))
    model = catalog.load_model(ModelSettings(model="dual:tiny", device="cpu", batch_size="auto"), [])
    assert isinstance(model, DualEncoder)
    assert model.identity.name == "dual:tiny"
    assert model.identity.revision == folder_hash(tmp_path / "barista_bench" / "tiny_clip")


def test_size_and_content_distinguish_pixels() -> None:
    wide, high = Image.new("RGB", (4, 2)), Image.new("RGB", (2, 4))
    assert len({pixels_key(images) for images in ([wide], [high], [wide, high], [high, wide], [picture(0)])}) == 5
    assert pixels_key([picture(5)]) == pixels_key([picture(5).copy()])
