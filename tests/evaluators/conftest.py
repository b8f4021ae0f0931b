import json

import pytest

from tests import served_standin


@pytest.fixture
def relations_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What servers answer has the format of relations."""
    text = json.dumps([{"source_id": 1, "target_id": 2, "relation_type": "position", "value": "part of"}])
    monkeypatch.setattr(served_standin, "expected_text", lambda body, choice=0: text)
