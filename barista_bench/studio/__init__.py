"""A local web page to look at graphs and runs, to annotate and review, and to answer the questions oneself."""

from barista_bench.errors import require_extra

require_extra("the studio", "starlette", "uvicorn", extra="studio")
