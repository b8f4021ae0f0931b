"""The Hugging Face Space: a form that computes the metric. Needs gradio 3, see README.md."""

from pathlib import Path

import evaluate
from evaluate.utils import launch_gradio_widget

launch_gradio_widget(evaluate.load(str(Path(__file__).with_name("temporal_relations.py"))))
