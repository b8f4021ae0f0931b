"""Run the Hugging Face Space of a metric. It shows a form that computes the metric.

The README.md of the metric's folder names the metric and has an example for the form.
`barista-bench publish` copies this file into the folder of each metric. On this machine: `python app.py FOLDER`.
"""

import json
import re
import sys
from pathlib import Path

import evaluate
import gradio as gr

FOLDER = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent
README = (FOLDER / "README.md").read_text(encoding="utf-8")
TITLE = re.findall(r"^title: (.+)$", README, re.MULTILINE)[0]
EXAMPLE = json.loads(re.findall(r"```json\n(.+?)```", README, re.DOTALL)[0])
METRIC = evaluate.load(str(FOLDER / (re.sub(r"\W", "_", TITLE.lower()) + ".py")))


def compute(predictions: str, references: str) -> object:
    """Compute the scores from two JSON lists. Raises a gradio.Error that names the error in the lists."""
    try:  # use a new metric each time, since a metric that refused an input keeps parts of it
        return type(METRIC)().compute(predictions=json.loads(predictions), references=json.loads(references))
    except (TypeError, ValueError) as error:
        message = f"{str(error)[:400]}. Fix: give two JSON lists, as README.md describes them"
        raise gr.Error(message, print_exception=False) from error


fields = [gr.Code(json.dumps(column), language="json", label=name) for name, column in EXAMPLE.items()]
page = {"title": TITLE, "description": METRIC.description, "flagging_mode": "never", "api_name": "compute"}
gr.Interface(compute, fields, gr.JSON(label="metrics"), **page).launch()
