"""How sure the answer is: the overconfident posterior, corrected by how often such answers were right.

The four numbers were fitted on simulated problems with a known truth (docs/strategies/swissfinals.md says on which, and
how well they hold on others). The statement is about the items returned as best, taken together: the chance
that one of them is a best item.
"""

import math
from dataclasses import dataclass

START = 1.0
PER_MASS = 0.34  # per unit of the posterior's own log odds
PER_LOST = -3.8
PER_CLEAR_LEAD = 0.2
MOST_LOG_ODDS = 3.5  # of the posterior: higher values predicted no better
MOST_LEAD = 30.0
GRADED = 1.4  # a spread at which items clearly differ from one another
MOST_EVEN = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the strategy knows of its own answer when it is asked how sure it is.

    `mass` is the share of the finals' posterior that the returned items hold, `lost` the chance that the best
    item is no finalist, by the scores when the finals began. `spread` is about 1 when the items below the
    two leaders win and lose like flipped coins, and larger when they differ among themselves; `lead` is how
    many points the best score among the returned items is above the third best of the finalists.
    """

    mass: float
    lost: float
    spread: float
    lead: float


def stated_confidence(evidence: Evidence) -> float:
    """Return how often answers with such evidence held a best item.

    A lead counts more when the other items are even: among equals, one or two leaders are the best,
    while in a graded pool there may always be a better one.
    """
    even = min(MOST_EVEN, max(0.0, GRADED - evidence.spread))
    lead = min(MOST_LEAD, max(0.0, evidence.lead))
    log_odds = (
        START + PER_MASS * _log_odds(evidence.mass) + PER_LOST * evidence.lost + PER_CLEAR_LEAD * even * lead
    )
    return 1 / (1 + math.exp(-log_odds))


def _log_odds(share: float) -> float:
    inside = min(1 - 1e-6, max(1e-6, share))
    return min(MOST_LOG_ODDS, math.log(inside / (1 - inside)))
