"""What a webhook sends: a sentence for chat tools, the facts for programs, and the signature of both.

Signed as Standard Webhooks has it: the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. The field
that names the event is called `event`, not `type`, for Mattermost refuses posts of types that it doesn't know.
"""

import base64
import binascii
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from duelpool.campaign import events
from duelpool.errors import BadParameter
from duelpool.store import log

SECRET = "whsec_"
SECRET_BYTES = (24, 64)
TEST = "webhook.test"
NAME_AT_MOST = 80
_AT = "@\u200b"  # a space without width: no chat tool takes the name after it for someone to call


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a campaign, as it is sent."""

    id: str
    campaign: str
    name: str  # of the campaign
    kind: str
    occurrence: int
    facts: Mapping[str, Any]
    time: float


def _times(event: Event) -> str:
    return "" if event.occurrence == 1 else f" again (the {event.occurrence}. time)"


def _campaign_done(event: Event) -> str:
    return f"All {event.facts['topics']} topics are done{_times(event)}."


def _topic_done(event: Event) -> str:
    done, of = event.facts["done"], event.facts["topics"]
    return f"Topic {_short(event.facts['topic'])} is done{_times(event)}; {done} of {of} topics are."


def _assessor_excluded(event: Event) -> str:
    return (
        f"An assessor was excluded: {event.facts['judgments']} judgments no longer count. "
        f"{event.facts['excluded']} are excluded now."
    )


def _budget_reached(event: Event) -> str:
    if "judge" in event.facts:
        return f"The budget of the model {_short(event.facts['judge'])} doesn't cover another request."
    spent, budget = (f"{event.facts[name] / 100:,.2f}" for name in ("spent", "budget"))
    currency = event.facts["currency"]
    return f"{spent} of {budget} {currency} are spent: the budget doesn't cover another assignment."


_SENTENCES: Mapping[str, Callable[[Event], str]] = {
    events.CAMPAIGN_DONE: _campaign_done,
    events.TOPIC_DONE: _topic_done,
    events.ASSESSOR_EXCLUDED: _assessor_excluded,
    events.BUDGET_REACHED: _budget_reached,
    TEST: lambda _: "This is a test: the webhook works.",
}


def _short(name: Any) -> str:
    """Return a name that fits into a message."""
    text = " ".join(str(name).split())
    return text if len(text) <= NAME_AT_MOST else text[: NAME_AT_MOST - 1] + "…"


def sentence(event: Event) -> str:
    """Return an event in words, without any markup."""
    return f"{_short(event.name)}: {_SENTENCES[event.kind](event)}"


def _for_slack(text: str) -> str:
    """Escape what Slack and Mattermost take for markup or for a call to everyone in the channel."""
    for sign, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", _AT)):
        text = text.replace(sign, escaped)
    return text


def _as_json(event: Event) -> dict[str, Any]:
    text = sentence(event)
    return {
        "id": event.id,
        "event": event.kind,
        "time": log.iso_time(event.time),
        "campaign": {"id": event.campaign, "name": event.name},
        "occurrence": event.occurrence,
        "data": event.facts,
        "text": _for_slack(text),  # Slack, Mattermost, Rocket.Chat, Zulip
        "content": text.replace("@", _AT),  # Discord
        "allowed_mentions": {"parse": []},  # Discord: notify no one
    }


def _as_text(event: Event) -> dict[str, Any]:
    return {"text": _for_slack(sentence(event))}


def _as_card(event: Event) -> dict[str, Any]:
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "TextBlock", "text": sentence(event), "wrap": True}],
    }
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attached]}


BODIES: Mapping[str, Callable[[Event], dict[str, Any]]] = {
    "json": _as_json,
    "text": _as_text,
    "teams": _as_card,
}
"""The forms of a body: all fields, the sentence alone, or a card for a workflow of Microsoft Teams."""


def body_of(event: Event, form: str) -> bytes:
    """Return an event as the bytes to send: the same ones at every attempt."""
    return json.dumps(BODIES[form](event), ensure_ascii=False).encode()


# ---- signing


def secret_of(random: bytes) -> str:
    """Return a secret as people copy it."""
    return SECRET + base64.b64encode(random).decode()


def secret_bytes(secret: str) -> bytes:
    """Return the bytes of a secret; refuse one that isn't of the form whsec_BASE64 or has another length."""
    least, most = SECRET_BYTES
    try:
        found = base64.b64decode(secret.removeprefix(SECRET), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if not secret.startswith(SECRET) or not least <= len(found) <= most:
        raise BadParameter(
            f"The secret isn't {SECRET} and then {least} to {most} bytes in base64.",
            remedy="Make one with: echo whsec_$(openssl rand -base64 32)",
        )
    return found


def signed_headers(secret: str, event: str, now: int, body: bytes) -> dict[str, str]:
    """Return the headers that prove where a body comes from, and when it was sent."""
    content = b".".join((event.encode(), str(now).encode(), body))
    signature = base64.b64encode(hmac.digest(secret_bytes(secret), content, sha256)).decode()
    return {
        "webhook-id": event,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{signature}",
    }
