"""Spatio-temporal grounding: recognition, tIoU and vIoU of the objects that a task takes."""

from .parsing import PredictedObject as PredictedObject
from .parsing import ReferenceObject as ReferenceObject
from .parsing import ReferenceTask as ReferenceTask
from .scoring import MEASURES as MEASURES
from .scoring import TaskScore as TaskScore
from .scoring import add_up as add_up
from .scoring import box_iou as box_iou
from .scoring import figures as figures
from .scoring import frame_ious as frame_ious
from .scoring import object_sums as object_sums
from .scoring import score_object as score_object
from .scoring import score_task as score_task
from .scoring import spatio_temporal_grounding as spatio_temporal_grounding
from .scoring import temporal_iou as temporal_iou
