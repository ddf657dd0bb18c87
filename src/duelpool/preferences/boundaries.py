"""When a difference counts as settled though it is looked at after every vote.

Seen over its own information, a difference's estimate times that information moves as a Brownian motion does. Two ways
hold at all looks at once, for the direction of one difference:

- within a plan, whose votes are known beforehand, the motion must exceed one constant line. By the reflection principle
  it does so by chance, at any time up to the plan's end, with probability 2 (1 - Phi(c)).
- without a plan, it must exceed the boundary of a normal mixture (Robbins), which holds for ever and is higher.
"""

from collections.abc import Mapping

import numpy as np

from duelpool.arrays import Floats
from duelpool.errors import BadParameter

_TYPICAL = 1.0  # the typical difference of strengths for which the boundary without a plan is most powerful
_BEYOND = 8.0  # standard errors that no table of quantiles has


def within_plan(progress: Floats, level: float, freedom: float) -> Floats:
    """Return how many standard errors a difference must have, by the share of the plan's information that is there."""
    import scipy

    line = -scipy.special.ndtri((1 - _checked(level)) / 2)
    with np.errstate(divide="ignore"):
        return _heavier(line / np.sqrt(np.clip(progress, 0.0, 1.0)), freedom)


def without_plan(errors: Floats, level: float, freedom: float) -> Floats:
    """Return how many standard errors a difference must have, for these standard errors."""
    alpha = 1 - _checked(level)
    with np.errstate(divide="ignore"):
        information = np.where(errors > 0, _TYPICAL**2 / np.maximum(errors, 1e-12) ** 2, 0.0)
        square = (1 + 1 / np.maximum(information, 1e-12)) * (
            np.log1p(information) - 2 * np.log(min(1.0, 2 * alpha))
        )
    return _heavier(np.sqrt(square), freedom)


def _checked(level: float) -> float:
    if not 0.5 <= level < 1:
        raise BadParameter(
            f"A level of confidence for what is settled lies from 0.5 to below 1, not at {level}."
        )
    return level


def _heavier(normal: Floats, freedom: float) -> Floats:
    """Return the quantiles of Student's distribution with the same tails."""
    import scipy

    tail = scipy.special.ndtr(-np.minimum(normal, _BEYOND))
    found: Floats = np.where(normal < _BEYOND, -scipy.special.stdtrit(np.maximum(freedom, 1.0), tail), np.inf)
    return found


def planned_votes(systems: tuple[str, ...], planned: Mapping[tuple[str, str], float]) -> Floats:
    """Return how many votes a plan has for each two of these systems, both ways round."""
    place = {system: at for at, system in enumerate(systems)}
    votes = np.zeros((len(systems), len(systems)))
    for (one, other), count in planned.items():
        if one in place and other in place:
            votes[place[one], place[other]] += count
            votes[place[other], place[one]] += count
    return votes


def progress_of(strengths: Floats, now: Floats, planned: Floats, prior: float) -> Floats | None:
    """Return the share of a plan's information about each difference that is there; None where it isn't the plan.

    `now` and `planned` are votes of each two systems, both ways round. More votes than planned are no longer the plan.
    """
    if planned.sum() <= 0 or now.sum() > planned.sum() * (1 + 1e-9):
        return None
    chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    worth = chance * (1 - chance)
    n = len(strengths)
    variances = []
    for votes in (now, np.maximum(planned, now)):
        information = -votes * worth
        information[np.diag_indices(n)] = 0.0
        information[np.diag_indices(n)] = -information.sum(axis=1) + prior / 4
        spread = np.linalg.pinv(information + 1 / n, hermitian=True)
        own = np.diag(spread)
        variances.append(own[:, None] + own[None, :] - 2 * spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(variances[0] > 0, variances[1] / variances[0], 0.0)
    found: Floats = np.clip(share, 0.0, 1.0)
    return found
