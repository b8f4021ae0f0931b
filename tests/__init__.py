"""Tests of everything but the metrics, which carry their own.

What users export for their own work (a Hub mirror, a token, offline mode, settings of `run`, a rank, a proxy) changes
no test: this module removes it from the environment before the first library reads it. HF_HOME stays, since it holds
caches.
"""

import os

USERS_OWN = (
    *("HF_", "HUGGING", "TRANSFORMERS_", "DO_NOT_TRACK", "DISABLE_TELEMETRY"),
    *("BARISTA_BENCH_", "OPENAI_", "WANDB_", "TRACKIO_", "VLLM_"),
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_", "TORCHELASTIC_", "SLURM_"),
    *("HTTP_PROXY", "ALL_PROXY"),  # which would come between the tests and the servers that they start
)
"""What their names start with, in whatever case."""

for _name in [name for name in os.environ if name.upper().startswith(USERS_OWN) and name != "HF_HOME"]:
    del os.environ[_name]
os.environ["HF_TOKEN_PATH"] = os.devnull  # no login exists
