"""What needs a manager's attention, in sentences, each with the page where it is corrected."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from duelpool.campaign.views.simulated import simulated_note
from duelpool.campaign.views.status import CampaignStatus
from duelpool.campaign.work.ledger import full_price
from duelpool.frames import counted
from duelpool.recruitment.settlement import settlement_state
from duelpool.web.manage.dashboard import Dashboard
from duelpool.web.manage.reading import below_tests
from duelpool.web.manage.schemas import Head
from duelpool.webhooks.setting_up import webhooks

SIDED_AT_LEAST = 100  # choices before a lean to a side is reported
TESTS_AT_LEAST = 10  # answers to test pairs before their share is reported
COMPARED_AT_LEAST = 20  # comparisons with others before an assessor's agreement is


@dataclass(frozen=True, slots=True)
class Attention:
    """Something to look at: a sentence, and the page with its query where it is looked at and corrected."""

    kind: str
    sentence: str
    page: str
    action: str  # what the link says
    query: dict[str, str] = field(default_factory=dict)


_HINDRANCES: dict[str, tuple[str, str, dict[str, str]]] = {
    "state": ("settings", "Open it in the settings", {}),
    "held": ("settings", "Add texts and questions", {}),
    "budget": ("money", "See the money", {}),
    "tests": ("settings", "See the settings", {}),
    "parked": ("topics", "See these topics", {"state": "parked"}),
    "excluded": ("assessors", "See the assessors", {"state": "excluded"}),
    "stuck": ("topics", "See these topics", {"state": "waiting"}),
}


def attention(dashboard: Dashboard, status: CampaignStatus, head: Head) -> list[Attention]:
    """Return what needs attention, what stops the campaign first."""
    found = []
    for each in status.hindrances:
        page, action, query = _HINDRANCES.get(each.kind, ("topics", "See the topics", {}))
        found.append(Attention(each.kind, each.sentence, page, action, query))
    for look in _LOOKS:
        found += look(dashboard, status, head)
    return found


def _money(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """Money that ends before the judgments do."""
    left, price = status.money.left, status.price
    to_go = head.expected - head.judgments
    if left is None or not price or to_go <= 0 or left < full_price(dashboard.campaign.settings):
        return  # without a budget; or a hindrance says that it is spent
    if left < price * to_go:
        sentence = f"The budget lasts for about {int(left / price):,} of the {to_go:,} judgments to go."
        yield Attention("money", sentence, "money", "See the money")


def _lean(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """A lean to one side, beyond chance."""
    low, high, share = head.left_low, head.left_high, head.left_share
    if low is None or high is None or share is None:
        return
    if head.left_choices + head.right_choices < SIDED_AT_LEAST or low <= 0.5 <= high:
        return
    side, part = ("left", share) if share > 0.5 else ("right", 1 - share)
    sentence = f"{100 * part:.0f} % of the choices are for the {side} side: more than chance."
    yield Attention("lean", sentence, "assessors", "See who leans", {"order": "left"})


def _tests(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """Test pairs that too many fail, and assessors whom the next failed one would exclude."""
    settings = dashboard.campaign.settings
    people = [each for each in status.assessors if each.state != "excluded" and each.tests_seen]
    seen, passed = sum(each.tests_seen for each in people), sum(each.tests_passed for each in people)
    if seen >= TESTS_AT_LEAST and passed / seen < settings.test_share:
        sentence = (
            f"Assessors pass {passed:,} of {seen:,} test pairs, {100 * passed / seen:.0f} %: "
            "check the test pairs and the guide."
        )
        yield Attention("test-pairs", sentence, "assessors", "See their results", {"order": "tests"})
    near = [] if status.done else [each for each in people if below_tests(each, settings)]
    if near:
        who = "1 assessor is" if len(near) == 1 else f"{len(near):,} assessors are"
        sentence = f"{who} below or one failed test pair away from exclusion."
        yield Attention("near-exclusion", sentence, "assessors", "See who", {"order": "tests"})


def _agreement(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """Assessors who agree with the others less often than not."""
    odd = [
        each
        for each in status.assessors
        if each.state != "excluded"
        and each.agreement is not None
        and each.compared >= COMPARED_AT_LEAST
        and each.agreement < 0.5
    ]
    if odd:
        who = "1 assessor agrees" if len(odd) == 1 else f"{len(odd):,} assessors agree"
        sentence = f"{who} with the others in fewer than half of the comparisons."
        yield Attention("agreement", sentence, "assessors", "See who", {"order": "agreement"})


def _simulated(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """Judgments that no person made."""
    if sentence := simulated_note(status):
        yield Attention("simulated", sentence, "assessors", "See who", {"search": "simulated"})


def _payments(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """Payments to check by hand."""
    if dashboard.campaign.settings.panel and (questions := settlement_state(dashboard.campaign).questions):
        sentence = f"{counted(len(questions), 'payment')} to check at {dashboard.campaign.settings.panel}."
        yield Attention("payments", sentence, "money", "Check them")


def _webhooks(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """Webhooks with events that didn't arrive."""
    for each in dashboard.campaign.read(webhooks):
        sentence = (
            f"{each.host} takes no more events."
            if each.state == "gone"
            else f"{counted(each.failed, 'event')} didn't arrive at {each.host}."
        )
        if each.failed or each.state == "gone":
            yield Attention("webhooks", sentence, "settings", "See the webhooks")


def _outdated(dashboard: Dashboard, status: CampaignStatus, head: Head) -> Iterator[Attention]:
    """Results that are still worked out."""
    if head.outdated:
        sentence = f"The best items of {counted(head.outdated, 'topic')} are being worked out."
        yield Attention("outdated", sentence, "topics", "See the topics")


_LOOKS: tuple[Callable[[Dashboard, CampaignStatus, Head], Iterator[Attention]], ...] = (
    _money,
    _simulated,
    _tests,
    _lean,
    _agreement,
    _payments,
    _webhooks,
    _outdated,
)
