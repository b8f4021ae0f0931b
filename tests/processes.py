"""Children of a server that has imported everything already: a start takes milliseconds, not seconds."""

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.judging.slow_judge", "tests.running.slow_run", "tests.running.test_log"])
