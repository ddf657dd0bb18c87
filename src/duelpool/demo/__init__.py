"""A small collection to try everything on: questions, passages, their truth, and rankers."""

from duelpool.demo.collection import Collection, grades, load_collection
from duelpool.demo.rankers import RANKERS, rank_all

__all__ = ["RANKERS", "Collection", "grades", "load_collection", "rank_all"]
