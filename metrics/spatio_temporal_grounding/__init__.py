"""Spatio-temporal grounding: recognition, tIoU and vIoU of the objects that a task needs."""

from .parsing import (
    PredictedObject as PredictedObject,
    ReferenceObject as ReferenceObject,
    ReferenceTask as ReferenceTask,
)
from .scoring import (
    MEASURES as MEASURES,
    TaskScore as TaskScore,
    add_up as add_up,
    box_iou as box_iou,
    compute_metrics as compute_metrics,
    frame_ious as frame_ious,
    object_sums as object_sums,
    score_object as score_object,
    score_task as score_task,
    spatio_temporal_grounding as spatio_temporal_grounding,
    temporal_iou as temporal_iou,
)
