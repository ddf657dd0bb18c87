"""Signed messages: base64 of HMAC-SHA256 over the timestamp and the raw body."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from duelpool.panels.base import ForgedMessage

SIGNATURE, TIMESTAMP, EVENT = "x-prolific-request-signature", "x-prolific-request-timestamp", "x-event-id"
WINDOW_SECONDS = 300.0
_EVENT = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


def signature_of(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message under this secret."""
    mac = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256)
    return base64.b64encode(mac.digest()).decode()


def read_signed(
    headers: Mapping[str, str], body: bytes, now: float, secret: str
) -> tuple[str, str, dict[str, Any]]:
    """Verify a message, and return its event id, signature and values.

    Header names are in lower case. Without a secret, every message is refused.
    """
    signature, timestamp = headers.get(SIGNATURE, ""), headers.get(TIMESTAMP, "")
    if not secret:
        raise ForgedMessage(
            "This server accepts no messages.", remedy="It has no secret to verify them with."
        )
    expected = signature_of(secret, timestamp, body)
    if not hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
        raise ForgedMessage("The signature is not the panel's.", remedy="Sign with the workspace's secret.")
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", timestamp):
        raise ForgedMessage("The message has no valid timestamp.", remedy="Send it again.")
    if abs(now - float(timestamp)) > WINDOW_SECONDS:
        raise ForgedMessage("The message is too old, or from the future.", remedy="Send it again.")
    event = headers.get(EVENT, "")
    if not _EVENT.fullmatch(event):
        raise ForgedMessage("The message has no event id.", remedy="Send it with X-Event-ID.")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ForgedMessage("The message can't be read.", remedy="Send a JSON object.")
    return event, expected, values
