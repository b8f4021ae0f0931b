"""The programs of docs/baselines.md, each against a stand-in of the package that it asks; their files are scored."""

import json
import re
import runpy
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from barista_bench.annotate.decisions import read_decisions
from barista_bench.api import load_results
from barista_bench.benchmarks.kinds.masks import answered_masks
from barista_bench.data.folder import build
from barista_bench.runs.ask.runner import run
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.scene_graph import decode_mask
from tests.conftest import MadeOnce
from tests.vista.made import write_small_release

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.full
PAGE = Path(__file__).resolve().parents[1] / "docs" / "baselines.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> ModuleType:
    """Make a module, and the packages above it, importable with this content."""
    parent, _, last = name.rpartition(".")
    module = ModuleType(name)
    vars(module).update(content, __path__=[])
    monkeypatch.setitem(sys.modules, name, module)
    if parent:
        above = sys.modules.get(parent) or stand_in(monkeypatch, parent)
        setattr(above, last, module)
    return module


@pytest.fixture
def place(tmp_path: Path, datasets_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers_of(program: str, place: Path, data: Path, benchmark: str, task: str, file: str) -> ScoredRun:
    """Run the page's program that contains a text, then ask its file as a model."""
    source = next(each for each in PROGRAMS if program in each)
    (place / benchmark).symlink_to(data)
    (place / "program.py").write_text(source)
    runpy.run_path("program.py")
    run(benchmark, "runs", benchmark=benchmark, task=task, model=f"predictions:{file}", repetitions=1)
    (scored,) = load_results("runs").runs
    assert scored.results.coverage.is_complete
    assert scored.results.coverage.statuses["ok"] == len(scored.samples)
    return scored


@pytest.fixture
def handyvqa(generated: Callable[[str], Path], made_once: MadeOnce) -> Path:
    settings: dict[str, Any] = {"benchmark": "handyvqa", "sampling": {"frames": 4}, "cache": False}
    return made_once("built/handyvqa_baselines", lambda out: build(generated("handyvqa"), out, **settings))


def test_care_ego_writes_a_box_for_each_hand_and_its_object(
    six_tasks: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Segmentor:
        def test_step(self, data: dict[str, Any]) -> list[SimpleNamespace]:
            (pixels,) = data["inputs"]
            assert (pixels.shape, pixels.dtype) == ((3, 448, 448), torch.uint8)
            labels = {name: torch.zeros((1, 448, 448), dtype=torch.int64) for name in ("left_obj", "right_obj", "hand")}
            labels["hand"][:, 224:, :112], labels["hand"][:, 224:, 336:] = 1, 2
            labels["left_obj"][:, :112, :112] = 1
            labels["left_obj"][:, :112, 224:280] = labels["right_obj"][:, :112, 224:280] = 1
            labels["two_obj"] = (labels["left_obj"] + labels["right_obj"] > 1).to(torch.float32)
            return [SimpleNamespace(**{f"pred_sem_seg_{n}": SimpleNamespace(data=d) for n, d in labels.items()})]

    def init_model(config: str, checkpoint: str, device: str) -> Segmentor:
        assert (config, checkpoint) == ("configs/CaRego.py", "best_mIoU_ckpt.pth")
        return Segmentor()

    stand_in(monkeypatch, "mmseg.apis", init_model=init_model)
    scored = answers_of("mmseg", place, six_tasks, "barista", "hand_object", "care_ego.jsonl")
    first = json.loads(str(scored.samples[0].record.text))
    (image,) = scored.examples[0].images(scored.task)
    width, height = image.size
    assert [entry["hand_type"] for entry in first] == ["both", "left"]
    assert first[1]["object_box"] == pytest.approx([0, 0, width / 4, height / 4])
    left, right = [0, height / 2, width / 4, height], [width * 3 / 4, height / 2, width, height]
    assert np.allclose(first[0]["hand_boxes"], [left, right])
    assert first[1]["hand_boxes"] == [pytest.approx(left)]


def test_care_ego_tells_on_which_frames_hands_touch_things(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Segmentor:
        def test_step(self, data: dict[str, Any]) -> list[SimpleNamespace]:
            (pixels,) = data["inputs"]
            assert (pixels.shape, pixels.dtype) == ((3, 448, 448), torch.uint8)
            masks = dict.fromkeys(("left_obj", "two_obj"), pixels[:1] * 0) | {"right_obj": pixels[:1] > 99}
            return [SimpleNamespace(**{f"pred_sem_seg_{n}": SimpleNamespace(data=d) for n, d in masks.items()})]

    frames = [np.full((4, 6, 3), value, dtype=np.uint8) for value in (0, 200, 0)]
    stand_in(monkeypatch, "mmseg.apis", init_model=lambda *_, **__: Segmentor())
    stand_in(monkeypatch, "mmcv", VideoReader=lambda path: frames, imresize=lambda f, size: np.resize(f, (*size, 3)))
    (source,) = (each for each in PROGRAMS if "mmcv" in each)
    (place / "program.py").write_text(source)
    monkeypatch.setattr(sys, "argv", ["program.py", "videos/pour.mp4"])
    runpy.run_path("program.py")
    decisions = read_decisions(place / "pour.csv")
    assert (decisions.video, decisions.confidence) == ("pour", [0, 1, 0])


def test_viclip_ranks_the_descriptions_by_8_frames(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def retrieve_text(
        frames: list[Any], texts: list[str], models: dict[str, str], topk: int, device: object
    ) -> tuple[list[str], Any]:
        assert len(frames) == 8
        assert frames[0].shape[2] == 3
        assert models == {"viclip": "l", "tokenizer": "ViClip-InternVid-10M-FLT.pth"}
        assert topk == len(texts) == len(set(texts))
        ranked = sorted(texts, key=len, reverse=True)
        return ranked, np.array([len(text) for text in ranked], dtype=np.float32)

    def get_viclip(size: str, pretrain: str) -> dict[str, str]:
        return {"viclip": size, "tokenizer": pretrain}

    write_small_release(place / "release")
    settings: dict[str, Any] = {
        "benchmark": "vista",
        "configs": ["virtual_home"],
        "sampling": {"frames": 8},
        "cache": False,
    }
    data = build(place / "release", place / "built", **settings).folder
    stand_in(monkeypatch, "viclip", get_viclip=get_viclip, retrieve_text=retrieve_text)
    scored = answers_of("viclip", place, data, "vista", "virtual_home", "viclip_virtual_home.jsonl")
    for sample in scored.samples:
        inputs: dict[str, Any] = dict(sample.example.inputs)
        lengths = dict(zip(inputs["labels"], map(len, inputs["descriptions"]), strict=True))
        assert json.loads(str(sample.record.text)) == {"scores": lengths}


def test_lavila_scores_choices_by_cosine(handyvqa: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tower(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(
            self, text_use_cls_token: bool, project_embed_dim: int, num_frames: int, drop_path_rate: float
        ) -> None:
            super().__init__()
            self.positions = torch.nn.Parameter(torch.zeros(num_frames))

        def encode_image(self, video: Any) -> Any:
            assert video.shape[:2] == (1, 3)
            assert video.shape[3:] == (224, 224)
            assert float(video.abs().max()) < 3
            return torch.tensor([[1.0, 0.0]])

        def encode_text(self, ids: Any) -> Any:
            assert ids.shape[1] == 77
            return torch.stack([ids[:, 0].float(), torch.ones(len(ids))], dim=1)

    def inflate(wanted: Any, state: Any, num_frames: int, load_temporal_fix: str) -> Any:
        assert (state.keys(), num_frames, load_temporal_fix) == (wanted.keys(), 16, "bilinear")
        return {"positions": state["positions"].repeat(4)}

    def generate_tokenizer(name: str) -> Callable[[list[str]], Any]:
        assert name == "CLIP_OPENAI_TIMESFORMER_LARGE"
        return lambda texts: torch.tensor([[len(text)] * 77 for text in texts])

    stand_in(monkeypatch, "lavila.models.models", CLIP_OPENAI_TIMESFORMER_LARGE=Tower)
    stand_in(monkeypatch, "lavila.models.utils", inflate_positional_embeds=inflate)
    stand_in(monkeypatch, "lavila.utils.preprocess", generate_tokenizer=generate_tokenizer)
    args = Namespace(model="CLIP_OPENAI_TIMESFORMER_LARGE", use_cls_token=False, project_embed_dim=256)
    torch.save({"args": args, "state_dict": {"module.positions": torch.zeros(4)}}, place / "lavila.pth")
    scored = answers_of("lavila", place, handyvqa, "handyvqa", "action", "lavila_action.jsonl")
    for sample in scored.samples:
        options: list[str] = sample.example.inputs["options"]  # type: ignore[assignment]
        cosines = [len(text) / (len(text) ** 2 + 1) ** 0.5 for text in options]
        assert [*json.loads(str(sample.record.text))["scores"].values()] == pytest.approx(cosines)


def test_sa2va_joins_the_masks_of_all_objects(handyvqa: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Chat:
        eval = to = lambda self, *_: self

        def predict_forward(self, video: list[Any], text: str, tokenizer: str) -> dict[str, Any]:
            assert text.startswith("<image>Please segment")
            assert tokenizer == "words"
            width, height = video[0].size
            masks = np.zeros((2, len(video), height, width), dtype=bool)
            masks[0, :, : height // 2], masks[1, :, height // 2 :] = True, True
            return {"prediction": "[SEG] [SEG]", "prediction_masks": list(masks)}

    def loader(made: object) -> SimpleNamespace:
        return SimpleNamespace(from_pretrained=lambda path, **settings: made if settings["trust_remote_code"] else None)

    classes = {"AutoModel": loader(Chat()), "AutoTokenizer": loader("words"), "PreTrainedTokenizerBase": Chat}
    stand_in(monkeypatch, "transformers", **classes)  # `datasets` looks for the last of these
    scored = answers_of("Sa2VA-4B", place, handyvqa, "handyvqa", "rvos_parts", "sa2va_rvos_parts.jsonl")
    assert scored.results.metrics["frame_coverage"].mean == 1.0
    for sample in scored.samples:
        masks = answered_masks(sample.prediction)
        assert len(masks) == len(sample.example.inputs["frames"])  # type: ignore[arg-type]
        assert all(decode_mask(mask).all() for _, mask in masks)
