"""The throughput script: its arguments, its tiny path, and that it measures what it says."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

PERF = Path(__file__).resolve().parents[2] / "perf"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(PERF))
    import throughput
    import throughput_gpu

    yield throughput, throughput_gpu
    for name in ("throughput", "throughput_gpu"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--size", "4b", "--device", "cpu"], "needs a CUDA GPU"),
        (["--size", "7b"], "invalid choice"),
        (["--batch-sizes", "1", "0"], "no number of 1 or more"),
        (["--examples", "many"], "no number of 1 or more"),
        (["--architecture", "resnet"], "invalid choice"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(scripts, capsys, arguments, named):
    with pytest.raises(SystemExit):
        scripts[0].main(arguments)
    assert named in capsys.readouterr().err


def test_a_tiny_model_goes_through_the_measurement_of_a_gpu(scripts, one_thread, capsys):
    given = "--architecture gemma3 --device cpu --examples 3 --new-tokens 4 --batch-sizes 1 2 auto"
    scripts[0].main(given.split())
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    assert [row.split("|")[1].strip() for row in rows] == ["1", "2", "auto"]
    assert rows[0].split("|")[3].strip() == "1.00"
    assert "failed" not in "".join(rows)
    assert lines[-1].startswith("best batch size: ")


def test_the_requests_of_the_measurement_hold_three_samples_of_one_image(scripts):
    request = scripts[1].request(4)
    assert (len(request.seeds), [image.size for image in request.images]) == (3, [(1280, 720)])
