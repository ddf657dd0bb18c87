"""What strategies may know before anybody has judged: a score per item, from an LLM's preferences, say."""

import math
from collections.abc import Mapping

from duelpool.campaign.campaign import Campaign
from duelpool.errors import BadParameter
from duelpool.store import Writing, holdings, log


def set_prior(campaign: Campaign, prior: Mapping[str, Mapping[str, float]]) -> int:
    """Let strategies know scores of items beforehand; return how many items got one.

    Only before the first line of a topic's log: everything that is asked there depends on it.
    """
    if not all(math.isfinite(score) for scores in prior.values() for score in scores.values()):
        raise BadParameter("A prior's scores are finite numbers.")

    def work(tx: Writing) -> int:
        found = sum(holdings.set_priors(tx, topic, prior[topic]) for topic in sorted(prior))
        for (
            topic
        ) in prior:  # after the writing, which keeps answers out; it is undone when one was there before
            if log.head(tx, topic):
                raise BadParameter(
                    f"Topic '{topic}' has been judged already.", remedy="Give a prior to a new campaign."
                )
        return found

    found = campaign.write(work)
    for topic in prior:
        campaign.live.forget(topic)
    return found
