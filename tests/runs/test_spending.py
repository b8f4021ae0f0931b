"""A bound on spending stops a run before it is passed, and a higher bound continues the run as if there had been
none."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.core.status import Status
from barista_bench.errors import BudgetError, ConfigError
from barista_bench.models.base import Completion, GenerationConfig, Request
from barista_bench.models.served.requests import estimated_input_tokens
from barista_bench.runs.ask.answers import Spending, TokenCounts, logged_tokens
from barista_bench.runs.ask.config import SpendingSettings
from barista_bench.runs.described import Prices, read_prices
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.runs.made_logs import change_lines, read_folder
from tests.served_standin import Body, Fault, ServedStandIn

pytestmark = pytest.mark.usefixtures("relations_answers")
PRICES = Prices(input=1.0, output=10.0, cached_input=0.5)


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text("m: {input: 1, output: 10, cached_input: 0.5}\nother: {input: 0, output: 0}\n")
    return path


def thinks(reply: Body) -> None:
    """40 of 100 tokens of the prompt were cached, and 6 of 7 written ones were thought."""
    for choice in reply["choices"]:
        choice["message"]["reasoning_content"] = "Hm."
    usage = reply["usage"]
    usage["prompt_tokens_details"] = {"cached_tokens": 40}
    usage["completion_tokens_details"] = {"reasoning_tokens": 6 * len(reply["choices"])}


def asked(dataset: Path, out: Path, server: ServedStandIn, **settings: Any) -> Any:
    return run(dataset, out, model="served:m", base_url=server.url, max_new_tokens=100, **settings)


def content(folder: Path) -> list[dict[str, Any]]:
    """All records of a run without their seconds, in one order."""
    records = [msgspec.structs.asdict(record) | {"seconds": None} for record in read_folder(folder)]
    return sorted(records, key=lambda record: (record["example_id"], record["repetition"]))


@pytest.mark.parametrize("draws", [1, 2])
def test_the_next_input_is_taken_to_be_as_much_above_its_estimate_as_any_before(draws: int) -> None:
    config = GenerationConfig(max_new_tokens=100, temperature=0.5)
    request = Request("r", Prompt("", (TextPart("x" * 400),)), (), seeds=tuple(range(draws)))
    estimate = estimated_input_tokens(request)
    spent = draws * (3 * estimate + 1) + draws * (estimate + 1)
    next_at_most = draws * (3 * estimate + 100)
    for bound in (spent + next_at_most, spent + next_at_most - 1):
        spending = Spending(SpendingSettings(max_tokens_total=bound), Prices(), config)
        for factor in (3, 1):
            spending.begin(request)
            spending.end(request, [Completion("", input_tokens=factor * estimate, output_tokens=1)] * draws)
        assert spending.fits(request) == (bound == spent + next_at_most)


@pytest.mark.parametrize("bounds", [{"max_cost": 0.006}, {"max_tokens_total": 3000}], ids=["dollars", "tokens"])
@pytest.mark.full
def test_a_stopped_and_continued_run_equals_one_that_never_stopped(
    dataset: Path, tmp_path: Path, prices: Path, bounds: dict[str, float]
) -> None:
    with ServedStandIn(lambda _: Fault("reply", change=thinks)) as server:
        asked(dataset, tmp_path / "whole", server, prices=prices)
        whole = len(server.calls)
        said = r"spent are .* it could (take|cost) (?!0\.0000).*Fix: start the same command with a higher bound"
        with pytest.raises(BudgetError, match=said):
            asked(dataset, tmp_path / "parts", server, prices=prices, **bounds)
        stopped_after = len(server.calls) - whole
        taken = logged_tokens([tmp_path / "parts/samples.jsonl"], [])
        assert 0 < stopped_after < whole
        assert taken == TokenCounts(100 * stopped_after, 21 * stopped_after, 40 * stopped_after)
        assert taken.total <= bounds.get("max_tokens_total", taken.total)
        assert PRICES.cost(*taken) <= bounds.get("max_cost", 1)
        with pytest.raises(BudgetError):  # the next start counts this spending
            asked(dataset, tmp_path / "parts", server, prices=prices, **bounds)
        assert len(server.calls) == whole + stopped_after
        asked(dataset, tmp_path / "parts", server, prices=prices, **dict.fromkeys(bounds, 10**6))
        assert len(server.calls) == 2 * whole
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    parts, at_once = (score(tmp_path / name).results for name in ("parts", "whole"))
    assert parts.model_dump(exclude={"timing"}) == at_once.model_dump(exclude={"timing"})
    costs, same = parts.timing.costs, at_once.timing.costs
    assert {name: costs[name] for name in costs if name != "seconds"} == {
        name: same[name] for name in same if name != "seconds"
    }
    assert [costs[name].total for name in ("input_tokens", "cached_tokens", "output_tokens", "thinking_tokens")] == [
        *(100 * whole, 40 * whole, 21 * whole, 18 * whole)
    ]
    assert costs["dollars"].total == pytest.approx(PRICES.cost(100 * whole, 21 * whole, 40 * whole))
    assert costs["output_tokens"].mean == pytest.approx(7)


def test_a_model_without_token_counts_is_stopped_at_once(dataset: Path, tmp_path: Path, prices: Path) -> None:
    with ServedStandIn(lambda _: Fault("reply", change=lambda reply: reply.update(usage=None))) as server:
        with pytest.raises(BudgetError, match="does not report the tokens"):
            asked(dataset, tmp_path / "run", server, prices=prices, max_cost=5.0, max_concurrency=1)
        assert 0 < len(server.calls) <= 3
    assert {record.status for record in read_folder(tmp_path / "run")} == {Status.OK}
    costs = score(tmp_path / "run").results.timing.costs
    assert set(costs) == {"seconds"}  # unknown is no 0


def test_a_bound_is_for_one_process(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=r"max_cost and max_tokens_total need.*Fix"):
        run(dataset, tmp_path / "run", model="chance", max_tokens_total=10)


def test_evaluate_scores_the_finished_answers_and_ends_with_3(dataset: Path, tmp_path: Path, prices: Path) -> None:
    with ServedStandIn() as server:
        flags = ["--model", "served:m", "--base-url", server.url, "--max-new-tokens", "100", "--task", "relations"]
        bound = ["--prices", str(prices), "--max-cost", "0.006", "--out", str(tmp_path / "runs"), "--no-progress"]
        ended = CliRunner().invoke(cli.app, ["evaluate", str(dataset), *flags, *bound])
    assert ended.exit_code == 3, ended.output
    assert "INCOMPLETE" in ended.output
    assert "stopped before the next request: spent are 0.00" in ended.output
    assert (tmp_path / "runs/report/report.html").is_file()


def test_a_sample_of_several_steps_is_spent_once(tmp_path: Path) -> None:
    def record(run: int, tokens: int) -> SampleRecord:
        return SampleRecord("k", "f", "e", run, Status.OK, "x", input_tokens=tokens, output_tokens=tokens // 10)

    with SampleLog(tmp_path / "samples.jsonl") as samples, SampleLog(tmp_path / "steps.jsonl") as steps:
        for tokens in (10, 20):
            steps.append(record(0, tokens))
            steps.append(record(1, tokens))
        samples.append(record(0, 30))
    assert logged_tokens([tmp_path / "samples.jsonl"], [tmp_path / "steps.jsonl"]) == TokenCounts(60, 6, 0)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("m: {input: 1}", "m.output: Field required"),
        ("m: {input: -1, output: 1}", "m.input"),
        ("m: {input: .nan, output: 1}", "m.input"),
        ("m: {input: 1, output: 1, batch: 2}", "m.batch"),
        ("[1]", "the whole"),
        ("n: {input: 1, output: 1}", "has no prices of 'm', but of n"),
    ],
)
def test_prices_that_cannot_be_used_are_refused(tmp_path: Path, written: str, complaint: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(written)
    with pytest.raises(ConfigError, match=rf"prices\.yaml: {complaint}.*Fix: "):
        read_prices(path, "m")


def test_logs_without_thought_and_cached_tokens_are_read_as_unknown(
    dataset: Path, tmp_path: Path, prices: Path
) -> None:
    with ServedStandIn(lambda _: Fault("reply", change=thinks)) as server:
        asked(dataset, tmp_path, server, repetitions=1, prices=prices)
    now = score(tmp_path).results
    later = {"thinking_tokens", "cached_tokens"}
    change_lines(
        tmp_path / "samples.jsonl", lambda line: {name: value for name, value in line.items() if name not in later}
    )
    old = score(tmp_path).results
    assert set(now.timing.costs) - set(old.timing.costs) == later
    assert old.model_dump(exclude={"timing"}) == now.model_dump(exclude={"timing"})
    assert old.timing.input_tokens == now.timing.input_tokens
