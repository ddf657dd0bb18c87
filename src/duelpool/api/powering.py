"""`dp.powered`: a leaderboard of systems by people's votes, made more exact by a model's."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from duelpool.api.inputs import Data, is_path, with_campaign
from duelpool.errors import BadParameter
from duelpool.evaluation.powered import PoweredBoard, TieShare, powered_board
from duelpool.evaluation.systems import Over
from duelpool.files import SystemVote, read_votes


def powered(
    votes: Data,
    model_votes: Data = None,
    *,
    criterion: str | None = None,
    ties: TieShare = "halves",
    over: Over = "questions",
    level: float = 0.95,
    seed: int = 0,
) -> PoweredBoard:
    """Rank systems by few votes of people and many of a model (prediction-powered inference, PPI++).

    `votes` are people's, or people's and a model's: a file, a list of votes, or a campaign in which systems compete.
    `model_votes` are a model's, in a file or a list. The pairs that people judged must be a random part of all. The
    model is left out where it doesn't help. `ties` are halves or losses of both; `over` says what intervals and ranks
    speak of: questions like these, or the votes of people on these very pairs.

    >>> import duelpool as dp
    >>> from duelpool.files import SystemVote
    >>> model = [SystemVote("x", "y", "b" if at % 4 == 0 else "a", f"q{at}", model=True) for at in range(200)]
    >>> people = [SystemVote(vote.a, vote.b, vote.outcome, vote.question) for vote in model[:40]]
    >>> dp.powered(people, model).headline
    "x is first by people's votes."
    """
    given = [*_votes(votes)]
    if model_votes is not None:
        given += [replace(vote, model=True) for vote in _votes(model_votes, model=True)]
    return powered_board(given, criterion=criterion, ties=ties, over=over, level=level, seed=seed)


def _votes(source: Data, *, model: bool = False) -> Iterable[SystemVote]:
    def of_campaign(campaign: object) -> tuple[SystemVote, ...]:
        from duelpool.api.campaigns import OpenCampaign
        from duelpool.campaign.views.system_votes import votes_of

        return tuple(votes_of(cast("OpenCampaign", campaign).campaign).votes)

    if (own := with_campaign(source, of_campaign)) is not None:
        return own
    if is_path(source):
        return read_votes(os.fspath(cast("str", source)), model=model)
    if isinstance(source, Iterable):
        rows = list(source)
        if all(isinstance(row, SystemVote) for row in rows):
            return cast("list[SystemVote]", rows)
    raise BadParameter(
        "Votes are a file, a campaign, or a list of SystemVote.", remedy="Read them with read_votes."
    )
