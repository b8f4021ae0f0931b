"""Relations with the time interval in which they hold: recall@K and segment IoU."""

from .scoring import TimedRelation, temporal_relations

__all__ = ["TimedRelation", "temporal_relations"]
