"""Local web pages to view graphs and runs, to annotate and review videos, and to answer questions as a person."""

from barista_bench.errors import require_extra

require_extra("the studio", "starlette", "uvicorn", extra="studio")
