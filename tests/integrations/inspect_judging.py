"""Run by test_harnesses.py where inspect_ai is: one grader's figures in inspect_ai and by `barista-bench judge`.

Arguments: task of inspect_ai, data, run folder with the answers of one repetition. Prints both as one line of JSON.
"""

import hashlib
import json
import sys
from pathlib import Path

from inspect_ai import eval as evaluate
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from barista_bench.core.prompt import Prompt
from barista_bench.judging import session
from barista_bench.judging.scoring import score_judged
from barista_bench.models import Completion, Request
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.log.sample_log import read_records


def reply(text: str, seed: int) -> str:
    """A score that depends on the question and the seed; every fifth reply has none."""
    drawn = int(hashlib.sha256(f"{text} {seed % 2**31}".encode()).hexdigest(), 16)
    score, reason = ("reasoning_score", "analysis") if "reasoning_score" in text else ("score", "reason")
    return "no verdict" if drawn % 5 == 0 else json.dumps({score: drawn % 6, reason: "drawn"})


class Grader(ScriptedModel):
    def __init__(self) -> None:
        super().__init__("grader", lambda *_: "")

    def generate(self, requests: list[Request], config: object) -> list[list[Completion]]:
        return [[Completion(reply(words(r.prompt), seed)) for seed in r.seeds] for r in requests]


def words(prompt: Prompt) -> str:
    return prompt.system + "".join(part.text for part in prompt.joined_parts)


@solver
def replay(runs: str) -> Solver:
    """Answers of the run folders below a folder, of one repetition."""
    logs = [read_records(path) for path in Path(runs).rglob("samples.jsonl")]
    texts = {record.example_id: record.text or "" for log in logs for record in log}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("recorded", texts[str(state.sample_id)])
        return state

    return solve


def main(task: str, data: str, run: str) -> None:
    def outputs(messages: list, tools: object, choice: object, config: object) -> ModelOutput:
        output = ModelOutput.from_content("grader", reply("".join(m.text for m in messages), config.seed))
        output.usage = ModelUsage()  # otherwise tokens are counted with a file from the network
        return output

    grader = get_model("mockllm/model", custom_outputs=outputs)
    options = {"task_args": {"data": data, "judge": True}, "display": "none", "log_dir": f"{run}/inspect"}
    (log,) = evaluate(task, model="mockllm/model", model_roles={"grader": grader}, solver=replay(run), **options)
    assert log.status == "success", log.error.message
    (scores,) = (score for score in log.results.scores if score.name == "judge")
    session.load_model = lambda config, tasks: Grader()
    judged = session.judge(run, "served:grader")
    results = score_judged(judged.run, judged.folder).results
    ours = {name: metric.mean for name, metric in results.metrics.items()} | {"judged": results.coverage.judged}
    print(json.dumps([{name: value.value for name, value in scores.metrics.items()}, ours]))


if __name__ == "__main__":
    main(*sys.argv[1:])
