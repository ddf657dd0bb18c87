"""Secrets that the store must keep and give back, such as those of webhooks: sealed with the key outside of it.

Where there is no such key, they are stored as they are, like the secret that signs links. A sealed text is encrypted
with HMAC-SHA256 as a stream of bytes under a random nonce, and carries an HMAC-SHA256 of all of it.
"""

import base64
import hmac
import os
import secrets
from collections.abc import Mapping
from hashlib import sha256

from duelpool.access.keys import KEY, KEY_FILE, outside_key
from duelpool.errors import BadParameter

_PLAIN, _SEALED = "plain:", "sealed:"
_NONCE, _TAG = 16, 32


def seal(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a secret as it is to be stored."""
    key = outside_key(environment)
    if key is None:
        return _PLAIN + text
    nonce = secrets.token_bytes(_NONCE)
    body = nonce + _mixed(key, nonce, text.encode())
    return _SEALED + base64.b64encode(body + _tag(key, body)).decode()


def unseal(stored: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a secret from what is stored; refuse where the key is missing or another one."""
    if stored.startswith(_PLAIN):
        return stored.removeprefix(_PLAIN)
    key = outside_key(environment)
    whole = base64.b64decode(stored.removeprefix(_SEALED))
    body, tag = whole[:-_TAG], whole[-_TAG:]
    if key is None or not hmac.compare_digest(tag, _tag(key, body)):
        given = "no key is given" if key is None else "another key is given"
        raise BadParameter(
            f"This secret is sealed with a key outside of the store, and {given}.",
            remedy=f"Give the key with {KEY_FILE} or {KEY}, or make a new secret.",
        )
    return _mixed(key, body[:_NONCE], body[_NONCE:]).decode()


def _mixed(key: bytes, nonce: bytes, data: bytes) -> bytes:
    """Encrypt or decrypt: both are the same exclusive or with the stream of a nonce."""
    own = hmac.digest(key, b"duelpool sealing: stream", sha256)
    blocks = range(-(-len(data) // _TAG))
    stream = b"".join(hmac.digest(own, nonce + block.to_bytes(4, "big"), sha256) for block in blocks)
    return bytes(one ^ other for one, other in zip(data, stream, strict=False))


def _tag(key: bytes, body: bytes) -> bytes:
    return hmac.digest(hmac.digest(key, b"duelpool sealing: tag", sha256), body, sha256)
