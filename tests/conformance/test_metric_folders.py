"""The required files and the allowed imports of every folder in metrics/."""

import ast
import re
import sys

import pytest
from huggingface_hub import SpaceCard

from tests.conformance.loading import FOLDERS, METRICS

every_folder = pytest.mark.parametrize("name", FOLDERS)


@every_folder
def test_the_folder_is_complete(name):
    needed = {f"{name}.py", "scoring.py", "README.md", "requirements.txt", "__init__.py"}
    assert needed <= {path.name for path in (METRICS / name).iterdir()}


@every_folder
def test_the_readme_is_a_space_card(name):
    card = SpaceCard.load(METRICS / name / "README.md")
    assert (card.data.sdk, card.data.sdk_version) == ("gradio", "6.31.0")
    assert card.data.tags == ["evaluate", "metric"]
    assert card.data.license == "apache-2.0"
    assert card.data.app_file == "app.py"
    assert re.search(r"^## Limits$", card.text, re.MULTILINE)


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level < 2, f"{path} imports from outside its folder"
            if node.level == 0:
                yield node.module.split(".")[0]


@every_folder
def test_a_metric_folder_imports_only_published_packages_and_its_functions_need_no_evaluate(name):
    for path in (METRICS / name).glob("*.py"):
        imported = set(imports_of(path))
        assert not imported & {"barista_bench", "metrics", "tests", *FOLDERS}, path
        if path.name != f"{name}.py":
            assert not imported & {"evaluate", "datasets", "torch"}, path


@every_folder
def test_the_folder_requires_every_library_that_it_imports(name):
    required = (METRICS / name / "requirements.txt").read_text(encoding="utf-8").split()
    given = {re.match(r"[\w.-]+", line)[0] for line in required}
    for path in (METRICS / name).glob("*.py"):
        libraries = {module for module in imports_of(path) if module not in sys.stdlib_module_names}
        assert libraries <= given, f"{path} imports {libraries - given}: add it to requirements.txt"


@every_folder
def test_the_script_imports_every_sibling_that_its_siblings_need(name):
    # evaluate copies only files that the script itself imports, one import a line.
    pattern = re.compile(r"^from \.(\w+) import .*[^(,\\]$", re.MULTILINE)
    folder = METRICS / name
    copied = set(pattern.findall((folder / f"{name}.py").read_text(encoding="utf-8")))
    for sibling in copied:
        tree = ast.parse((folder / f"{sibling}.py").read_text(encoding="utf-8"))
        needed = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1}
        assert needed <= copied, f"{name}.py must import from {needed - copied}, which {sibling}.py needs"
