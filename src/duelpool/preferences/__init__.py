"""Judgments to win matrix, and from there to scores, levels and qrels."""

from duelpool.preferences.levels import combined_qrels, levels_of, top_values
from duelpool.preferences.matrix import (
    StochasticTransitivity,
    WinMatrix,
    borda,
    borda_shares,
    condorcet_winner,
    copeland,
    stochastic_transitivity,
    win_matrices,
)
from duelpool.preferences.strengths import Strengths, bootstrap_strengths, bradley_terry

__all__ = [
    "StochasticTransitivity",
    "Strengths",
    "WinMatrix",
    "bootstrap_strengths",
    "borda",
    "borda_shares",
    "bradley_terry",
    "combined_qrels",
    "condorcet_winner",
    "copeland",
    "levels_of",
    "stochastic_transitivity",
    "top_values",
    "win_matrices",
]
