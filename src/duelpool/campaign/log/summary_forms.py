"""The ways of counting behind stored summaries: a summary of another one isn't read."""

import hashlib
import json

from duelpool import __version__
from duelpool.campaign.log.summary_rows import Tag, TopicHead
from duelpool.campaign.settings import FIXED, Settings
from duelpool.deciders import part_class, read_goal

FORM = 5
"""Counted up whenever a summary gets another form or meaning: earlier ones are then read no more."""

WITHOUT_RESULT = "/without-result"
"""The end of the form of summaries whose result takes long and isn't worked out yet."""


class Forms:
    """The ways of counting of a campaign: by the strategy of a topic."""

    def __init__(self, settings: Settings) -> None:
        own = settings.as_json()
        fixed = json.dumps({name: own[name] for name in FIXED if name != "strategy"}, sort_keys=True)
        self._settings = settings
        self._goal = read_goal(settings.goal)
        self._fixed = hashlib.blake2b(fixed.encode(), digest_size=12).hexdigest()
        self._by_spec: dict[str, str] = {}

    def of(self, head: TopicHead) -> str:
        """Return the way of counting of a topic."""
        spec = head.strategy or self._settings.strategy
        if spec not in self._by_spec:
            version = part_class(self._goal, spec).version
            self._by_spec[spec] = f"{FORM}/{__version__}/{spec}/{version}/{self._fixed}"
        return self._by_spec[spec]

    def tag(self, head: TopicHead, stated: bool = True) -> Tag:
        """Return the tag that a summary of this topic must have now, with its result `stated` or without."""
        return head.tag(self.of(head) + ("" if stated else WITHOUT_RESULT))

    def holds(self, tag: Tag | None, head: TopicHead) -> bool:
        """Whether a summary of this tag holds for a topic now, with its result or without."""
        return tag is not None and tag in (self.tag(head), self.tag(head, stated=False))
