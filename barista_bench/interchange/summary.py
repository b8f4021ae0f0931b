"""`summary.txt` of a released run folder: the figures of `metrics.json` for people.

The random best and worst answers that the release adds for referring are drawn without a seed: they are left out.
"""

from __future__ import annotations

from collections.abc import Callable

from barista_bench.interchange.released_folder import DIRECTORY, JsonObject

_COMMON = (
    ("Examples total", "examples_total"),
    ("Skipped existing", "skipped_existing"),
    ("Provider successes", "provider_successes"),
    ("Call failures", "call_failures"),
    ("Parse failures", "parse_failures"),
    ("Parsed predictions", "parsed_predictions"),
)
_DETECTION = (
    *(("mAP @[.5:.95]", "map"), ("mAP @0.50", "map_50"), ("mAP @0.75", "map_75")),
    *((f"mAP @{size}", f"map_{size}") for size in ("small", "medium", "large")),
    *((f"mAR @{limit}", f"mar_{limit}") for limit in ("1", "10", "100", "small", "medium", "large")),
)
_LATENCIES = ("mean", "min", "max")
Lines = list[str]


def summary_text(task: str, metrics: JsonObject, directory: str, *, total_tokens: int) -> str:
    """The whole text, without a line end.

    Args:
        task: its name in the release.
        metrics: content of `metrics.json`.
        directory: the run's folder, as it is shown.
        total_tokens: sum of what the records say, shown where there is any usage.
    """
    before_times, after_times = _TASKS[task]
    lines = [f"{DIRECTORY}{directory}", *(f"{name}: {metrics[key]}" for name, key in _COMMON)]
    lines += [*before_times(metrics), "", *_times(metrics)]
    if after_times:
        lines += after_times(metrics)
    if "total_input_tokens" in metrics:
        lines += ["", *_tokens(metrics, total_tokens)]
    return "\n".join(lines)


def _times(metrics: JsonObject) -> Lines:
    return [
        f"Wall-clock time: {_duration(metrics['wall_clock_ms'])}",
        f"Concurrency: {metrics['concurrency']}",
        *(f"{name.capitalize()} request latency: {_duration(metrics[f'{name}_latency_ms'])}" for name in _LATENCIES),
    ]


def _duration(milliseconds: float | None) -> str:
    """A time as the release shows it.

    >>> _duration(1234.0), _duration(11.6), _duration(None)
    ('1.23s', '12ms', 'N/A')
    """
    if milliseconds is None:
        return "N/A"
    return f"{milliseconds / 1000:.2f}s" if milliseconds >= 1000 else f"{milliseconds:.0f}ms"


def _tokens(metrics: JsonObject, total: int) -> Lines:
    lines = [
        "Token usage:",
        f"  Input tokens:  {metrics['total_input_tokens']:,}",
        f"  Output tokens: {metrics['total_output_tokens']:,}",
    ]
    if "total_thinking_tokens" in metrics:
        lines.append(f"  Thinking tokens: {metrics['total_thinking_tokens']:,}")
    return [*lines, f"  Total tokens:  {total:,}"]


def _share(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.4f}"


def _counted(mean: float | None, count: int) -> str:
    return f"{_share(mean)} (n={count})"


def _section(title: str, lines: Lines) -> Lines:
    """An empty line, a title and lines; nothing without lines."""
    return ["", title, *lines] if lines else []


def _grounding(metrics: JsonObject) -> Lines:
    return ["", *(f"{name + ':':<14} {_share(metrics[key])}" for name, key in _DETECTION)]


def _grounding_categories(metrics: JsonObject) -> Lines:
    lines = [
        f"  {name}: mAP={_share(figures['map'])}  mAR@100={_share(figures['mar_100'])}"
        for name, figures in sorted(metrics["per_category"].items())
    ]
    return _section("Per-category mAP:", lines)


def _hand_object(metrics: JsonObject) -> Lines:
    matched = f"({metrics['hand_type_correct']}/{metrics['matched_gt']} matched)"
    return [
        "",
        f"Interaction recall: {_share(metrics['interaction_recall'])}",
        f"Interaction precision: {_share(metrics['interaction_precision'])}",
        f"Hand IoU (matched): {_share(metrics['hand_iou'])}",
        f"Object IoU (matched): {_share(metrics['object_iou'])}",
        f"Hand-type accuracy: {_share(metrics['hand_type_accuracy'])} {matched}",
        f"No-detection rate: {_share(metrics['no_detection_rate'])}",
    ]


def _relations(metrics: JsonObject) -> Lines:
    types = [
        f"  {name}: P={figures['precision']} R={figures['recall']} F1={figures['f1']} "
        f"(tp={figures['tp']} pred={figures['pred_count']} gt={figures['gt_count']})"
        for name, figures in sorted(metrics["per_relation_type"].items())
    ]
    return [
        "",
        f"Micro precision: {metrics['micro_precision']}",
        f"Micro recall: {metrics['micro_recall']}",
        f"Micro F1: {metrics['micro_f1']}",
        f"Mean per-example F1: {metrics['mean_example_f1']}",
        *_section("Per relation_type (micro over tuples, type-normalised):", types),
    ]


def _activity(metrics: JsonObject) -> Lines:
    return [
        f"Correct predictions: {metrics['correct_predictions']}",
        f"Accuracy: {metrics['accuracy']}",
        f"Accuracy on parsed: {metrics['accuracy_on_parsed']}",
    ]


def _activity_labels(metrics: JsonObject) -> Lines:
    lines = [
        f"  {name}: {figures['correct']}/{figures['total']} ({figures['accuracy']:.4f})"
        for name, figures in sorted(metrics["per_label"].items())
    ]
    return _section("Per-label accuracy:", lines)


def _judged(metrics: JsonObject) -> Lines:
    lines = ["", f"G-Eval mean score (0-1): {_counted(metrics['mean_geval_score'], metrics['geval_mean_score_count'])}"]
    for key in metrics:
        name = key.removeprefix("mean_geval_")
        if name != key and key != "mean_geval_score":
            lines.append(f"  {name.capitalize()}: {_counted(metrics[key], metrics[f'geval_{name}_count'])}")
    return lines


def _judged_categories(metrics: JsonObject) -> Lines:
    """Straight after the line before, without an empty one: the release has it so."""
    means, counted = metrics["category_mean_scores"], metrics["_category_scores"]
    lines = [f"  {name}: {_counted(mean, counted[name]['count'])}" for name, mean in sorted(means.items())]
    return _section("Per-category G-Eval scores:", lines)[1:]


_TASKS: dict[str, tuple[Callable[[JsonObject], Lines], Callable[[JsonObject], Lines] | None]] = {
    "grounding": (_grounding, _grounding_categories),
    "hand_object": (_hand_object, None),
    "referring": (_judged, None),
    "relation_extraction": (_relations, None),
    "activity_mcq": (_activity, _activity_labels),
    "visual_qa": (_judged, _judged_categories),
}
"""A task's lines before the times, and after them."""
