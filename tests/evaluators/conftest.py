import json
from pathlib import Path

import pytest

from barista_bench.data.folder import build
from tests import served_standin
from tests.conftest import MadeOnce


@pytest.fixture(scope="session")
def dataset(small_release: Path, made_once: MadeOnce) -> Path:
    """24 frozen examples of relations."""
    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}
    return made_once("evaluators/barista", lambda out: build(small_release, out, **settings))


@pytest.fixture
def relations_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What servers answer has the format of relations."""
    text = json.dumps([{"source_id": 1, "target_id": 2, "relation_type": "position", "value": "part of"}])
    monkeypatch.setattr(served_standin, "expected_text", lambda body, choice=0: text)
