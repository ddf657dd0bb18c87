"""Priors: scores of items that strategies know before the first judgment, such as from an LLM's preferences."""

import math
from collections.abc import Mapping

from duelpool.campaign.campaign import Campaign
from duelpool.errors import BadParameter
from duelpool.store import Writing, holdings, log


def set_prior(campaign: Campaign, prior: Mapping[str, Mapping[str, float]]) -> int:
    """Give strategies prior scores of items; return how many items got one.

    Only before the first line of a topic's log: all its questions depend on the prior.
    """
    if not all(math.isfinite(score) for scores in prior.values() for score in scores.values()):
        raise BadParameter("A prior's scores are finite numbers.")

    def work(tx: Writing) -> int:
        items = sum(holdings.set_priors(tx, topic, prior[topic]) for topic in sorted(prior))
        # Checked after the writes, which lock answers out; an error rolls them back.
        for topic in prior:
            if log.head(tx, topic):
                raise BadParameter(
                    f"Topic '{topic}' has been judged already.", remedy="Give a prior to a new campaign."
                )
        return items

    items = campaign.write(work)
    for topic in prior:
        campaign.live.forget(topic)
    return items
