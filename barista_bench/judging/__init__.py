"""Judges: models that grade the free-text answers of other models, after the fact.

`session.judge` asks, `scoring.score_judged` counts, `cross.cross_judge` compares judges, and
`questions.write_questions` has questions written. Importing the package itself loads none of them: the command line
reads its settings from here.
"""

from pathlib import Path

JUDGES = "judges"
JUDGE_FILE = "judge.json"


def judge_folders(run: str | Path) -> list[Path]:
    """The folders of all judges of a run, by name; `judge_folder.py` says what is in them."""
    return sorted(path.parent for path in (Path(run) / JUDGES).glob(f"*/{JUDGE_FILE}"))
