"""Aids of questions of other benchmarks, from the graph that they were generated from."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.aids.task_aids import Aid
from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError
from barista_bench.runs.ask import runner
from barista_bench.testing.aid_laws import check_aid_laws
from tests.conftest import MadeOnce

pytestmark = pytest.mark.full


@pytest.fixture(scope="session")
def graph_data(small_kitchen: Path, made_once: MadeOnce) -> Path:
    """The graph tables of the kitchen that questions are generated from."""
    return made_once("diagnosis/graph", lambda out: build(small_kitchen, out, frames="linked", cache=False))


@pytest.fixture(scope="session")
def sibling_data(generated: Callable[[str], Path], made_once: MadeOnce) -> Callable[[str], Path]:
    def built(name: str) -> Path:
        source = generated(name)
        return made_once(
            f"diagnosis/{name}", lambda out: build(source, out, benchmark=name, frames="linked", cache=False)
        )

    return built


WITH_OBJECTS = [("handyvqa", "process"), ("handyvqa", "state"), ("egocot", "cot"), ("vista", "real_world")]


@pytest.mark.parametrize(("benchmark", "name"), WITH_OBJECTS)
def test_a_copier_of_objects_in_view_gains_nothing(
    benchmark: str, name: str, sibling_data: Callable[[str], Path], graph_data: Path
) -> None:
    task, examples = get_task(benchmark, name), open_examples(sibling_data(benchmark), benchmark, name)
    book = AidBook.open(task, examples.examples, str(graph_data))
    told = [example for example in examples.examples if book.levels(example)]
    assert told
    for example in told:
        text = book.text(example, [Aid("objects")], DEFAULT_BOX_FORMAT) or ""
        assert "Times are seconds after the beginning of what is asked about" in text
    check_aid_laws(book, examples.examples, None)


def test_videos_joined_of_clips_have_no_aid(sibling_data: Callable[[str], Path], graph_data: Path) -> None:
    task, examples = get_task("vista", "real_world"), open_examples(sibling_data("vista"), "vista", "real_world")
    book = AidBook.open(task, examples.examples, str(graph_data))
    assert {example.metadata["level"] for example in examples.examples} > {1}
    assert {example.metadata["level"] for example in examples.examples if book.levels(example)} == {1}


def test_the_aids_of_a_generated_question_name_objects_of_its_graph(
    sibling_data: Callable[[str], Path], graph_data: Path, tmp_path: Path
) -> None:
    settings = {"benchmark": "handyvqa", "task": "process", "model": "chance", "repetitions": 1, "aid": "objects"}
    session = runner.run(sibling_data("handyvqa"), tmp_path, graph=str(graph_data), **settings)
    assert session.asked > 0
    assert session.failed == 0


def test_tasks_that_ask_about_objects_have_no_aids(sibling_data: Callable[[str], Path], tmp_path: Path) -> None:
    settings = {"benchmark": "tog_bench", "model": "oracle", "repetitions": 1, "aid": "objects"}
    with pytest.raises(ConfigError, match="t_stvg has no aids"):
        runner.run(sibling_data("tog_bench"), tmp_path, **settings)
