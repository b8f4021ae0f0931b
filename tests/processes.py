"""Children of a server that has imported everything already: a start takes milliseconds, not seconds."""

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        *("tests.judging.slow_judge", "tests.runs.slow_run", "tests.runs.test_log"),
        *("barista_bench.annotate.running", "barista_bench.data.folder", "barista_bench.generate.generator"),
    ]
)
