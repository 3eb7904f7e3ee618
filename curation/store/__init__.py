"""The immutable store: eight Delta Lake tables that only grow, but for erasure, and the views that say what holds."""

from curation.store.batch import Batch
from curation.store.store import Store

__all__ = ["Batch", "Store"]
