"""Challenging a campaign with a late run: its unjudged items above the best known ones are duelled with them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log.newcomers import CHALLENGE, challenges_so_far
from duelpool.campaign.views import summaries
from duelpool.errors import BadParameter
from duelpool.files import Run
from duelpool.pooling import group_duplicates
from duelpool.records import Passage, Pool
from duelpool.store import Reading, Writing, holdings, log


@dataclass(frozen=True, slots=True)
class Challenge:
    """A run's new items of a topic: `newcomers` are judged, `twins` are duplicates of items that are there."""

    topic: str
    best: tuple[str, ...]
    newcomers: tuple[str, ...]
    twins: Mapping[str, str]  # from a duplicate to the item that is judged for it


def find_challenges(
    campaign: Campaign,
    run: Run,
    *,
    depth: int = 10,
    texts: Mapping[str, Passage] | None = None,
    topics: Collection[str] | None = None,
) -> list[Challenge]:
    """Return the items that a run ranks above each topic's best known items and that the campaign doesn't know.

    A run is read down to its first best item, and no deeper than `depth`. With texts, an item whose text is
    there already is a duplicate, and needs no judgment.
    """
    if campaign.settings.stage == "grading":
        raise BadParameter(
            "The campaign is still grading: there is no best item yet.", remedy="Finish grading first."
        )
    if campaign.live.goal.of_systems:
        raise BadParameter(
            f"The goal of the campaign is '{campaign.live.goal}': its items don't compete for the best.",
            remedy="A further system joins with `duelpool join STORE ANSWERS`.",
        )
    if depth < 1:
        raise BadParameter(f"The depth is 1 or more, not {depth}.")
    ranked: dict[str, list[str]] = {}
    for topic, item in run.top(depth).select("topic", "docno").iter_rows():
        ranked.setdefault(topic, []).append(item)
    return campaign.read(lambda tx: _find(tx, campaign, ranked, texts, topics))


def _find(
    tx: Reading,
    campaign: Campaign,
    ranked: Mapping[str, Sequence[str]],
    texts: Mapping[str, Passage] | None,
    topics: Collection[str] | None,
) -> list[Challenge]:
    challenges: list[Challenge] = []
    wanted = {topic for topic in ranked if topics is None or topic in topics}
    for topic, found, _ in summaries.read(tx, campaign, only=wanted):
        best = found.levels[0] if found.levels else ()
        rows = holdings.items(tx, topic)
        stop = {row.id for row in rows if (row.twin_of or row.id) in best}
        known = {row.id for row in rows}
        new: list[str] = []
        for item in ranked[topic]:
            if item in stop:
                break
            if item not in known and item not in new:
                new.append(item)
        if new:
            canonical = [row.id for row in rows if row.twin_of is None]
            newcomers, same = _split_duplicates(tx, campaign, canonical, new, texts)
            challenges.append(Challenge(topic, best, newcomers, same))
    return challenges


def _split_duplicates(
    tx: Reading,
    campaign: Campaign,
    canonical: Sequence[str],
    new: Sequence[str],
    texts: Mapping[str, Passage] | None,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the new items that are judged, and the others with the items that they duplicate."""
    if texts is None:
        return tuple(new), {}
    known = holdings.passages(tx, canonical)
    together = {**{item: texts[item] for item in (*new, *canonical) if item in texts}, **known}
    # A grade makes the present items the representatives of their groups.
    groups = group_duplicates([*canonical, *new], together, dict.fromkeys(canonical, 1.0))
    newcomers = {group[0] for group in groups} - set(canonical)
    same = {item: group[0] for group in groups for item in group[1:] if item in new}
    return tuple(item for item in new if item in newcomers), same


def challenge(
    campaign: Campaign, challenges: Sequence[Challenge], texts: Mapping[str, Passage] | None = None
) -> int:
    """Add the newcomers, all or none; return how many there are to judge.

    They duel with the best item when their topic is done. Those that another process has added since they were found
    are left out.
    """

    def work(tx: Writing) -> int:
        joined = 0
        for found in challenges:
            log.lock_topic(tx, found.topic)
            known = {row.id for row in holdings.items(tx, found.topic)}
            each = replace(
                found,
                newcomers=tuple(item for item in found.newcomers if item not in known),
                twins={twin: item for twin, item in found.twins.items() if twin not in known},
            )
            by_item: dict[str, tuple[str, ...]] = {}
            for twin, item in each.twins.items():
                by_item[item] = (*by_item.get(item, ()), twin)
            members = dict.fromkeys((*each.newcomers, *by_item))
            holdings.add_pool(tx, Pool(each.topic, tuple(members), twins=by_item))
            if texts:
                shown = [texts[item] for item in each.newcomers if item in texts]
                holdings.add_passages(tx, shown)
            if each.newcomers:
                log.append(
                    tx,
                    each.topic,
                    log.PHASE_CLOSED,
                    phase=f"{CHALLENGE}{challenges_so_far(tx, each.topic) + 1}",
                    survivors=json.dumps(each.newcomers),
                    reason="a late run",
                )
            joined += len(each.newcomers)
        return joined

    joined = campaign.write(work)
    for each in challenges:
        campaign.live.forget(each.topic)
    return joined
