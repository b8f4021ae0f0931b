"""Videos scored against descriptions for agents: by encoders and by models that write, against the rule by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import write_scores
from barista_bench.errors import ConfigError, ModelError
from barista_bench.media.encoding import encode_video
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.rewards import Video, VideoReward
from tests.vista.made import plain_frames

TEXTS = ["somebody lifts the cup", "somebody pours milk", "somebody wipes the tray"]
EPISODES = [plain_frames(count) for count in (7, 20, 30, 40)]


class Shown:
    """Answers with what `answer` makes of each request, and keeps the requests."""

    def __init__(self, answer: Callable[[Request], str]) -> None:
        self.identity, self.box_format, self.batch_size = ModelIdentity("shown"), BoxFormat(), 8
        self.answer, self.requests = answer, list[Request]()

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        self.requests += requests
        return [[Completion(self.answer(request))] for request in requests]


def by_brightness(request: Request) -> str:
    """Scores that say which frames were shown."""
    mean = float(np.mean([np.asarray(image).mean() for image in request.images])) / 255
    return write_scores(dict(zip(request.choices, (mean, 1 - mean, mean * mean), strict=True)))


def by_hand(videos: Sequence[Video], video: Video, column: int, frames: int) -> float:
    """softmax over the descriptions, then the z-score by only the other videos, as the paper's section 4.1 says."""

    def softmax(frames_of: Video) -> np.ndarray:
        shown = sorted({step * (len(frames_of) - 1) // (frames - 1) for step in range(frames)})
        if len(frames_of) <= frames:
            shown = list(range(len(frames_of)))
        mean = round(float(np.mean([frames_of[at].mean() for at in shown])) / 255, 6)
        scores = np.array([mean, round(1 - mean, 6), round(mean * mean, 6)])
        return np.exp(scores) / np.exp(scores).sum()

    others = np.array([softmax(other)[column] for other in videos])
    return float((softmax(video)[column] - others.mean()) / (others.std(ddof=1) + 1e-6))


def test_a_score_is_standardised_over_descriptions_and_reference_videos() -> None:
    reward = VideoReward(Shown(by_brightness), TEXTS, EPISODES, frames=4)
    video = plain_frames(25)
    for column, text in enumerate(TEXTS):
        assert reward(video, text) == pytest.approx(by_hand(EPISODES, video, column, 4), abs=1e-3)


def test_steps_are_scores_of_beginnings_and_the_last_is_the_whole() -> None:
    reward = VideoReward(Shown(by_brightness), TEXTS, EPISODES, frames=4)
    video = plain_frames(25)
    steps = reward.steps(np.stack(video), TEXTS[1], 3)
    assert steps == [reward(video[:end], TEXTS[1]) for end in (8, 16, 25)]


def test_a_model_that_writes_is_asked_in_two_conversations() -> None:
    def written(request: Request) -> str:
        if request.images:
            return "1. A hand lifts a cup."
        return "Final Scores\n- (summary_0) 5\n- (summary_1) 1\n- (summary_2) 0"

    model = Shown(written)
    reward = VideoReward(model, TEXTS, EPISODES, frames=4)
    assert [len(request.images) for request in model.requests] == [4, 0, 0] * 4
    assert "A hand lifts a cup." in model.requests[-1].prompt.as_text()
    assert "- (summary_2) somebody wipes the tray" in model.requests[-1].prompt.as_text()
    model.answer = lambda request: "no scores" if request.images else "Final Scores\n- (summary_1) 5"
    assert reward(EPISODES[0], TEXTS[1]) > 0 > reward(EPISODES[0], TEXTS[0])


def test_a_dual_encoder_scores_the_frames_of_a_file_as_those_in_memory(tmp_path: Path) -> None:
    from barista_bench.models.dual_encoders.model import DualEncoder
    from barista_bench.models.tiny import make_tiny_clip

    model = DualEncoder.load(str(make_tiny_clip(tmp_path / "clip")))
    reward = VideoReward(model, TEXTS, EPISODES, frames=4)
    path = tmp_path / "episode.mp4"
    encode_video(path, plain_frames(12, 16), size=(16, 16), fps=10)
    lazy = LazyFrames(str(path), range(12))
    assert reward.steps(lazy, TEXTS[0], 2) == reward.steps(lazy.array(), TEXTS[0], 2)


def test_texts_that_do_not_fit_the_references_are_refused() -> None:
    model = Shown(by_brightness)
    with pytest.raises(ConfigError, match=r"1 descriptions and 4 references.*Fix"):
        VideoReward(model, TEXTS[:1], EPISODES)
    reward = VideoReward(model, TEXTS, EPISODES)
    with pytest.raises(ConfigError, match=r"'somebody sings' is none of the descriptions.*Fix"):
        reward(EPISODES[0], "somebody sings")
    with pytest.raises(ConfigError, match=r"8 steps of 7 frames.*Fix"):
        reward.steps(EPISODES[0], TEXTS[0], 8)


def test_a_model_without_an_answer_is_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Shown(by_brightness)
    reward = VideoReward(model, TEXTS, EPISODES)
    monkeypatch.setattr(model, "generate", lambda requests, config: [[Failure("no network")] for _ in requests])
    with pytest.raises(ModelError, match=r"no network.*Fix"):
        reward(EPISODES[0], TEXTS[0])
