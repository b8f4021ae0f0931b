"""Runs: send examples to a model, append answers to a log, and compute scores from that log only.

From `barista-bench run` to a number in `results.json`, an answer passes six files. `run` asks:

1. `ask/runner.py`, `run_config`: opens the tasks with their examples, locks the logs, loads the model, and describes
   the run in `run.json`. A start with other settings is refused here.
2. `ask/asking.py`, `Asker`: makes a `Request` for each example without a finished record in the log, and decodes its
   frames ahead. It logs the answer in `samples.jsonl` before the task sees it.
3. `ask/answers.py`: `answer_each` sends the requests to the model (`Model.generate` or `stream`) within the limits of
   spending. `answer_status` gives an answer the status that the model reports: ok, truncated, refused or failed.

`score` (and `evaluate`, after it has asked) reads the log:

4. `score/samples.py`: `read_samples` takes the records of this run (`run_records` of `log_reader.py` defines which),
   and `read_sample` parses each text. A truncated answer counts if it can be read. An unreadable or refused answer
   counts as wrong. A failed request does not count, unless the task says so (`Task.counts_provider_errors`).
   `counted_samples` calls `Task.statistics`. Only this call compares answers with references. `run_metrics` takes the
   mean of each metric over repetitions, and its interval. The number is `metrics.<name>.mean`.
5. The module of the task in `benchmarks/`: `parse` and `statistics`.
6. `score/scoring.py`: `score` takes these steps for a run folder, and writes `results.json`.
"""
