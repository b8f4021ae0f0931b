"""The packages that an installation brings, and those that it must not bring."""

import configparser
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from barista_bench import __version__
from barista_bench.benchmarks import get_benchmark
from tests.video_samples import render

ROOT = Path(__file__).resolve().parents[1]
MAPPED = {"metrics": "barista_bench.metrics", "dataset_cards": "barista_bench.dataset_cards"}


@pytest.fixture
def setup() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def test_setup_cfg_lists_every_package_of_the_tree(setup: configparser.ConfigParser) -> None:
    packages = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "barista_bench").rglob("__init__.py")}
    for folder, package in MAPPED.items():
        for path in (ROOT / folder).rglob("__init__.py"):
            packages.add(".".join([package, *path.parent.relative_to(ROOT / folder).parts]))
    assert set(setup["options"]["packages"].split()) == packages


def test_no_extra_brings_a_harness_or_vllm_which_have_separate_environments(setup: configparser.ConfigParser) -> None:
    required = "\n".join(setup["options.extras_require"].values())
    assert not re.search(r"^(vllm|gradio|inspect|lm.?eval|lmms|lighteval)", required, re.MULTILINE)


def brought(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> Iterator[str]:
    """The packages that a package with these extras requires, in one step or several, among those installed here."""
    for text in requires(name) or ():
        needed = Requirement(text)
        key = canonicalize_name(needed.name), frozenset(needed.extras)
        applies = not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in (*extras, ""))
        if key in seen or not applies:
            continue
        try:
            version(needed.name)
        except PackageNotFoundError:
            continue
        seen.add(key)
        yield key[0]
        yield from brought(*key, seen)


def test_constraints_pin_all_that_a_contributor_installs() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines}
    (extras,) = re.findall(r"--editable '\.\[(.+?)\]'$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    needed = set(brought("barista_bench", frozenset(extras.split(",")), set()))
    assert {"mkdocs-material", "ipykernel", "torch"} <= needed
    needed = {name for name in needed if not name.startswith(("nvidia-", "cuda-", "triton"))}  # which torch pins itself
    assert not needed - pinned - {"barista-bench"}


def test_the_citation_names_the_paper_that_the_package_names() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["preferred-citation"]["url"] == get_benchmark("barista").homepage
    assert citation["preferred-citation"]["title"] in get_benchmark("barista").citation
    assert citation["version"] == __version__


def test_the_version_has_release_notes_and_an_unreleased_section_above_them() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].split()[0] == __version__


@pytest.mark.full
def test_the_wheel_holds_all_data_files_and_no_stray_top_level_package(tmp_path: Path) -> None:
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-300:]}")
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0].partition("-")[0] for name in names}
    assert tops == {"barista_bench", "barista_bench_verifiers.py"}  # the second is a name that verifiers can import
    folders = {"barista_bench": "barista_bench", **{folder: f"barista_bench/{folder}" for folder in MAPPED}}
    data_files = {
        f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, place in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(data_files) > 600
    # A Space's page is published out of the clone.
    assert {name for name in data_files - {*names} if not name.endswith("/app.py")} == set()


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        (
            "import barista_bench, barista_bench.cli, barista_bench.models, barista_bench.scene_graph, "
            "barista_bench.core.task, barista_bench.benchmarks",
            {"torch", "transformers", "datasets", "evaluate", "decord"},
        ),
        ("import barista_bench", {"pandas"}),
        ("import barista_bench.runs.score.scoring", {"datasets", "pandas"}),
        ("import barista_bench.tables", {"pandas", "numpy", "typer"}),  # missing in a Space
        (
            "from barista_bench.media.video import read_frames; read_frames(sys.argv[1], [1])",
            {"datasets", "torch", "decord"},
        ),
    ],
)
def test_light_modules_load_no_heavy_ones(program: str, absent: set[str], tmp_path: Path) -> None:
    video = render(tmp_path / "clip.mp4", 2) if "read_frames" in program else ""
    code = f"import sys; {program}; print({absent} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, str(video)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}


def test_every_make_that_workflows_run_is_a_target_and_every_action_is_pinned() -> None:
    targets = set(re.findall(r"^([\w/-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name, text in WORKFLOWS.items():
        for command in re.findall(r"\bmake ([\w/ -]+)$", text, re.MULTILINE):
            assert set(command.split()) <= targets, (name, command)
        used = re.findall(r"uses: ([^\s]+)", text)
        assert all(re.search(r"@v\d+\.\d+\.\d+$", action) or action.startswith("./") for action in used), name
    assert re.findall(r"\bmake ", WORKFLOWS["ci.yml"])


def test_the_versions_of_python_that_are_tested_are_those_that_the_package_names() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    named = re.findall(r"Python :: (3\.\d+)", config["metadata"]["classifiers"])
    assert yaml.safe_load(WORKFLOWS["ci.yml"])["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    assert config["options"]["python_requires"] == f">={named[0]}"


def test_containers_install_what_setup_cfg_offers() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    for file in (ROOT / "containers").glob("*.Dockerfile"):
        text = file.read_text(encoding="utf-8")
        assert re.search(r"^FROM \S+:\d+\.\d+\.\d+-", text, re.MULTILINE), "the image is not pinned"
        (extras,) = re.findall(r"'\.\[(.+?)\]'", text)
        assert set(extras.split(",")) <= set(config["options.extras_require"])


def test_make_works_in_a_folder_whose_name_has_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a clone"
    for name in (".venv/installed", "node_modules/installed"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "constraints.txt", "package.json"):
        (folder / name).symlink_to(ROOT / name)
    command = ["make", "--dry-run", "--old-file=.venv/installed", "--old-file=node_modules/installed"]
    targets = ["run", "test", "test-full", "docs", "dist", "fidelity"]
    done = subprocess.run([*command, *targets], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace("\\\n", " ").splitlines()
    named = [line for line in printed if "a clone" in line and "Entering" not in line]
    assert len(named) >= 4
    assert all(sum("a clone" in word for word in shlex.split(line)) == line.count("a clone") for line in named), named


PAGE = (Path(__file__).parents[1] / "docs" / "fidelity.md").read_text(encoding="utf-8")


def test_the_page_is_of_the_tasks_as_they_are() -> None:
    stated = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|$", PAGE, re.MULTILINE))
    now = {task.name: str(task.version) for task in get_benchmark("barista").tasks}
    assert stated == now, "a task's version has moved since: run `make fidelity`"


def test_all_that_was_compared_is_equal_and_exceptions_are_few() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert {task for task, _, _ in rows} == {task.name for task in get_benchmark("barista").tasks}
    assert all(compared == equal for _, compared, equal in rows)
    assert 1 <= len(re.findall(r"^\d\. \*\*", PAGE, re.MULTILINE)) < 10
