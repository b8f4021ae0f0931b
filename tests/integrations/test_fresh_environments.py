"""Separate environments, made by pip: an installed wheel, the metrics without this package, and resolved
requirements."""

import configparser
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
METRICS = sorted(path.parent for path in (ROOT / "metrics").glob("*/requirements.txt"))


def run(command: list[str | Path], folder: Path) -> str:
    """The output of a command that sees nothing of this environment."""
    variables = {**os.environ, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(folder: Path, *requirements: str | Path, python: str = sys.executable) -> Path:
    """The scripts of a new virtual environment that holds these requirements."""
    run([python, "-m", "venv", folder], folder.parent)
    constraints = ["--constraint", ROOT / "constraints.txt"]
    run([folder / "bin/pip", "install", "--quiet", *constraints, *requirements], folder.parent)
    return folder / "bin"


def tracked() -> list[str]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.splitlines() if not name.startswith(".")]


def test_the_source_distribution_is_complete(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert set(tracked()) <= held


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wheel_of_the_source_distribution_goes_from_a_kitchen_to_a_score(
    version: str, wheel: Path, tmp_path: Path
) -> None:
    python = f"python{version}"
    if shutil.which(python) is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip(f"there is no {python} here")
    scripts = environment(tmp_path / "env", wheel, python=python)
    work = tmp_path / "work"
    work.mkdir()
    ours = scripts / "barista-bench"
    run([ours, "mini", "kitchen", "--videos", "3", "--no-progress"], work)
    run([ours, "build", "--source", "kitchen", "--out", "data/barista", "--sampling", "limit=5"], work)
    run(
        [ours, "run", "data/barista", "--task", "all", "--model", "oracle", "--repetitions", "1", "--out", "runs"], work
    )
    for folder in sorted((work / "runs").iterdir()):
        assert " 1.000 over 1 repetition(s)" in run([ours, "score", folder], work), folder


@pytest.fixture(scope="module")
def metrics_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment that holds only the requirements of the metrics, and no package of ours."""
    requirements = [argument for metric in METRICS for argument in ("--requirement", metric / "requirements.txt")]
    return environment(tmp_path_factory.mktemp("metrics") / "env", *requirements)


def test_every_metric_loads_where_only_its_own_requirements_are(metrics_only: Path, tmp_path: Path) -> None:
    program = "import evaluate, sys\nfor name in sys.argv[1:]: print(type(evaluate.load(name)).__name__)"
    printed = run([metrics_only / "python", "-c", program, *METRICS], tmp_path)
    assert len(printed.split()) == len(METRICS)


# A folder with another name than the metric's, as on the Hub. Figures go through JSON on both sides.
ASKED = r"""
import json, re, sys
import evaluate
from gradio_client import Client
folder, name, address = sys.argv[1:]
example = json.loads(re.findall(r"```json\n(.+?)```", open(f"{folder}/README.md").read(), re.DOTALL)[0])
client = Client(address, verbose=False)
figures = client.predict(*map(json.dumps, example.values()), api_name="/compute")
assert figures == json.loads(json.dumps(evaluate.load(f"{folder}/{name}.py").compute(**example))), figures
for refused in ("[1", "[[], [], [], []]"):
    try:
        client.predict(refused, json.dumps(example["references"]), api_name="/compute")
    except Exception as error:
        assert "Fix" in str(error), error
    else:
        raise AssertionError(refused)
"""


def test_every_space_starts_and_answers(metrics_only: Path, tmp_path: Path) -> None:
    run([metrics_only / "pip", "install", "--quiet", "gradio==6.31.0"], tmp_path)  # the sdk_version of the cards
    for metric in METRICS:
        folder = Path(shutil.copytree(metric, tmp_path / metric.name / "app"))
        shutil.copy(ROOT / "metrics" / "app.py", folder)
        variables = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False", "HF_HOME": str(tmp_path / "hf")}
        command = [metrics_only / "python", "-u", "app.py"]
        with subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True) as app:
            try:
                address = next(line.split()[-1] for line in app.stdout or () if "http://" in line)
                run([metrics_only / "python", "-c", ASKED, folder, metric.name, address], tmp_path)
            finally:
                app.terminate()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_space_can_be_installed_from_its_own_requirements(metric: Path, tmp_path: Path) -> None:
    options = ["--dry-run", "--ignore-installed", "--quiet", "--requirement", metric / "requirements.txt"]
    run([sys.executable, "-m", "pip", "install", *options, "gradio==6.31.0"], tmp_path)


def test_constraints_pin_all_that_the_extras_bring(tmp_path: Path) -> None:
    """Except torchvision's packages, with wheels that need one build of torch, and `hands`, with an older protobuf."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = ",".join(set(config["options.extras_require"]) - {"video", "hands"})
    report = tmp_path / "report.json"
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", report]
    constraints = ["--constraint", ROOT / "constraints.txt"]
    run([sys.executable, "-m", "pip", "install", *options, *constraints, f"{ROOT}[{extras}]"], tmp_path)
    installed = {canonicalize_name(item["metadata"]["name"]) for item in json.loads(report.read_text())["install"]}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert installed - {"barista-bench"} <= {canonicalize_name(line.partition("==")[0]) for line in lines}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_pin_has_a_wheel_for_every_python(version: str, tmp_path: Path) -> None:
    """But for docopt, which is one pure Python file without a wheel."""
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("docopt=")]
    (tmp_path / "pins.txt").write_text("\n".join(pins))
    options = ["--dry-run", "--no-deps", "--ignore-installed", "--quiet", "--only-binary", ":all:"]
    target = ["--python-version", version, "--target", tmp_path / "unused"]
    run([sys.executable, "-m", "pip", "install", *options, *target, "--requirement", tmp_path / "pins.txt"], tmp_path)
