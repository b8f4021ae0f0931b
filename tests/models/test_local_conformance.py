"""Every image-text-to-text type of transformers answers as plain `generate` does, in batches too, or is refused when it
is loaded with the reason. The whole takes minutes; docs/local_models.md holds its table.
"""

from importlib.util import find_spec

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.models.local_conformance import all_rows, examined, stated, written

without_torchvision = pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is installed")


@pytest.mark.full
@without_torchvision
@pytest.mark.parametrize(
    ("model_type", "together"),
    [
        *((name, True) for name in ("qwen3_vl", "qwen3_5_moe", "internvl", "gemma4", "llava_onevision")),
        *((name, True) for name in ("mllama", "mistral3", "chameleon")),
        *(("idefics", False), ("minicpmv4_6", False)),
    ],
)
def test_families_answer_as_plain_generate_does(one_thread, tmp_path, model_type, together):
    row = examined(model_type, tmp_path / model_type)
    assert (row.reason, row.answered, row.equal, row.together) == (None, (4, 4), (True, True), together)


@pytest.mark.integration
@pytest.mark.timeout(1800)
@without_torchvision
@pytest.mark.skipif(find_spec("num2words") is None, reason="needs num2words, as the extra `run` brings it")
def test_every_type_answers_as_plain_generate_does_or_is_refused_with_the_reason(one_thread, tmp_path):
    rows = all_rows(tmp_path)
    assert sum(row.built for row in rows) >= 70
    assert [row.model_type for row in rows if not all(row.equal)] == []
    assert written(rows) == stated(), "run python -m tests.models.local_conformance"
