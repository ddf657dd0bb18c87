"""A budget plan as a campaign: only the plan's sample is asked, with its propensities in the log.

Items are asked in the grading stage, pairs through a plan source in place of a strategy. What an assessor cannot
judge goes to another assessor, never to another item: that would change the propensities that the estimate uses.
"""

from dataclasses import replace

from duelpool.budget.plans.plan import Plan
from duelpool.campaign.campaign import Campaign
from duelpool.campaign.log.replay import counted_lines
from duelpool.campaign.settings import Scale, Settings
from duelpool.errors import BadParameter
from duelpool.records import Judgment, Pool
from duelpool.store import Reading, log

SCALE_BY_TOP: dict[float, Scale] = {1.0: "binary", 2.0: "abc", 4.0: "five"}


def plan_settings(plan: Plan, settings: Settings, scale: Scale | None = None) -> Settings:
    """Return a campaign's settings for a plan; by default the scale has the plan's highest grade."""
    rows = tuple(
        (each.topic, each.item, each.other or "", _chance(plan, each.expected), plan.judgments_for(each))
        for each in plan.questions
    )
    most_judgments = max(row[4] for row in rows)
    if plan.questions[0].other is not None:
        return replace(settings, plan=rows, stage="preferences", cap=max(most_judgments, settings.cap))
    chosen = scale or SCALE_BY_TOP.get(plan.top)
    if chosen is None:
        raise BadParameter(
            f"No scale of grades has {plan.top:g} as its highest utility.",
            remedy="Plan with --max-grade "
            + ", ".join(f"{top:g} (the scale {name})" for top, name in SCALE_BY_TOP.items())
            + ", or name a scale that goes no higher: --scale.",
        )
    return replace(settings, plan=rows, stage="grading", scale=chosen, grades_per_item=most_judgments)


def _chance(plan: Plan, expected: float) -> float:
    """Return the chance that a unit is in the sample."""
    if plan.draw != "replacing":
        return min(1.0, expected)
    return float(1.0 - max(0.0, 1.0 - expected / plan.n) ** plan.n)


def plan_pools(plan: Plan) -> list[Pool]:
    """Return the pools of a plan's sample; a topic without a sample has none."""
    items: dict[str, dict[str, None]] = {}
    for each in plan.questions:
        members = items.setdefault(each.topic, {})
        for name in (each.item, each.other):
            if name is not None:
                members[name] = None
    return [Pool(topic, tuple(names)) for topic, names in items.items()]


def plan_judgments(campaign: Campaign) -> list[Judgment]:
    """Return the judgments of a campaign for an estimate: released, and not retracted."""

    def work(tx: Reading) -> list[Judgment]:
        judgments = []
        for topic in dict.fromkeys(row[0] for row in campaign.settings.plan):
            lines = list(log.read_lines(tx, topic))
            counts = counted_lines(lines)
            released = {line.assignment for line in lines if line.event == log.RELEASE}
            judgments += [
                line.judgment
                for line in lines
                if line.judgment is not None
                and line.test_pair is None
                and not line.judgment.repeated
                and counts.keeps(line.seq)
                and (line.at_once or line.assignment is None or line.assignment in released)
            ]
        return judgments

    if not campaign.settings.plan:
        raise BadParameter(
            f"The campaign '{campaign.name}' has no budget plan.",
            remedy="Make one with: duelpool budget campaign",
        )
    return campaign.read(work)
