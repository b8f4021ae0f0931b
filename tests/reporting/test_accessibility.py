"""Every screen of the page before axe-core, which is had from npm."""

from typing import Literal

import pytest
from playwright.sync_api import Browser

from barista_bench.core.status import Status
from barista_bench.reporting import write_report
from tests.reporting.browser import opened
from tests.reporting.made_runs import MadeExamples, made_run

TASK = "#garden_fruit"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    examples = MadeExamples(10)
    runs = [
        made_run(examples, name="mixed"),
        made_run(examples, name="good", statuses=[Status.OK], answer="apple, pear", folder="b"),
        made_run(examples, name="chance", statuses=[Status.OK], answer="plum", folder="c"),
    ]
    return write_report(runs, tmp_path_factory.mktemp("report"))[0].as_uri()


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "hash_", ["", TASK, f"{TASK}?all=1", f"{TASK}/fruit%3Avideo%3A0", "#across", "#failures/mixed"]
)
def test_a_checker_of_accessibility_has_no_serious_fault_to_report(
    chromium: Browser, axe: str, made: str, hash_: str, scheme: Literal["light", "dark"]
) -> None:
    with opened(chromium, f"{made}{hash_}", scheme=scheme) as watched:
        watched.page.evaluate(axe)
        faults = watched.page.evaluate(
            "axe.run().then(found => found.violations.map(v => [v.id, v.impact, v.nodes[0].html]))"
        )
        assert [fault for fault in faults if fault[1] in ("serious", "critical")] == []
