"""A language model as a judge of a campaign: both orders of every pair, several at once, never over the budget.

Every step is stored before the next one: the most that a request can cost is held, the request is sent, its reply is
stored with its cost. A process that is killed between two steps resumes there; a request that was answered is never
sent again.
"""

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.runners.llm_lists import LISTED, ItemList, ItemLists, unfolded
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.judges.live import JudgeError, Sheet
from duelpool.judges.llm.endpoint import Endpoint
from duelpool.judges.llm.prices import Prices, most_tokens
from duelpool.judges.llm.prompts import PROMPTS, Prompt, unreadable_because
from duelpool.judges.llm.replies import (
    Malformed,
    ReplyForm,
    ReplyFormat,
    Verdict,
    list_form,
    parse_usage,
    parse_verdict,
    preference_form,
)
from duelpool.net.http import NoAnswer, NotSent, Response
from duelpool.records import Answer, Outcome, Passage
from duelpool.seeds import rng_for
from duelpool.store import Writing, holdings, llm
from duelpool.store.llm import ModelJudge, ModelReply, Order

WAIT_AT_MOST = 600.0  # seconds that a server may ask us to wait; beyond, the judge fails
MOST_ITEMS = 10  # of a list
_TOKENS_OF_AN_ITEM = 8  # that each item of a list adds to the longest reply
_RETRY = {408, 409, 425, 429}  # the statuses below 500 after which a request is tried again


class OutOfBudget(Exception):
    """The budget doesn't cover the most that the next request can cost."""


class EndpointRefuses(JudgeError):
    """The model's API refuses for good: the key, the model's name, or the form of the request is wrong."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request: its bytes, the form and the longest length of its reply, and what it asks about."""

    body: bytes
    form: ReplyForm
    max_tokens: int
    about: Order
    items: tuple[str, ...] = ()  # of a list, in the order shown

    @property
    def hash(self) -> str:
        """The SHA-256 of its bytes."""
        return hashlib.sha256(self.body).hexdigest()


Unfold = Callable[[Verdict, float], Mapping[Order, ModelReply]]
"""The replies that a verdict gives, from the verdict and the seconds that it took; all are stored at once."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a model is asked. `tries` bounds failed requests, `tries_malformed` replies that can't be read."""

    model: str
    prompt: Prompt
    reply_format: ReplyFormat = "schema"
    max_tokens: int = 64
    token_field: str = "max_tokens"  # newer servers call it max_completion_tokens
    temperature: float | None = 0.0
    prices: Prices | None = None
    budget: int | None = None
    tries: int = 6
    tries_malformed: int = 3
    first_wait: float = 1.0  # seconds, doubled with every try
    concurrency: int = 4
    items_per_request: int = 2  # more: lists, whose order is unfolded into pairs
    list_prompt: Prompt = PROMPTS["list"]

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise BadParameter("No model is named.", remedy="Give its name: --model NAME.")
        for name in ("max_tokens", "tries", "tries_malformed", "concurrency"):
            if getattr(self, name) < 1:
                raise BadParameter(f"'{name}' is a whole number from 1 on, not {getattr(self, name)}.")
        if not 2 <= self.items_per_request <= MOST_ITEMS:
            raise BadParameter(f"A request has 2 to {MOST_ITEMS} items, not {self.items_per_request}.")
        if self.list_prompt.kind != "list":
            raise BadParameter("The prompt for lists isn't one.", remedy="`duelpool prompt list` shows ours.")
        if self.budget is not None and self.prices is None:
            raise BadParameter(
                "A budget needs the prices of tokens.", remedy="Give --price-in and --price-out per million."
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """What decides the replies besides model and prompt."""
        parameters: dict[str, Any] = {
            "temperature": self.temperature,
            self.token_field: self.max_tokens,
            "reply_format": self.reply_format,
        }
        if self.items_per_request > 2:
            parameters |= {
                "items_per_request": self.items_per_request,
                "list_prompt": _named(self.list_prompt),
            }
        return parameters

    @property
    def prompt_text(self) -> str:
        """The prompt, and that for lists where the model gets any."""
        return "\n\n".join(
            (self.prompt.text, *((self.list_prompt.text,) if self.items_per_request > 2 else ()))
        )

    def request(self, sheet: Sheet, secret: str, listed: Sequence[Passage] = ()) -> ModelRequest:
        """Return the request for a question, or for a list of passages of its topic: always the same bytes."""
        ties = Outcome.TIE in sheet.outcomes
        if listed:
            form = list_form(len(listed), ties)
        else:
            form = ReplyForm(grades=sheet.grades) if sheet.right is None else preference_form(ties)
        prompt = self.list_prompt if listed else self.prompt
        max_tokens = self.max_tokens + _TOKENS_OF_AN_ITEM * len(listed)
        body: dict[str, Any] = {
            "model": self.model,
            "messages": prompt.messages(sheet, form, secret, listed),
            self.token_field: max_tokens,
        }
        if self.temperature is not None:
            body["temperature"] = self.temperature
        wanted = form.response_format(self.reply_format)
        if wanted is not None:
            body["response_format"] = wanted
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        return ModelRequest(data, form, max_tokens, _order(sheet), tuple(each.id for each in listed))


@dataclass(slots=True)
class LlmJudge:
    """A model that judges in a campaign under a pseudonym; several threads may use it at once."""

    campaign: Campaign
    assessor: str
    endpoint: Endpoint
    terms: Terms
    secret: str = ""
    session: str = field(default_factory=lambda: secrets.token_hex(8))
    stopping: threading.Event = field(default_factory=threading.Event)
    settled: int = 0  # calls whose cost is known; when it grows, held money has become free
    lists: ItemLists | None = None  # where the model is asked about more than two items at once

    @classmethod
    def enrol(cls, campaign: Campaign, assessor: str, endpoint: Endpoint, terms: Terms) -> "LlmJudge":
        """Enrol a model, or resume where it stopped; open calls of other processes are closed."""
        judge = cls(campaign, assessor, endpoint, terms)
        if terms.items_per_request > 2:
            if campaign.settings.stage == "grading":
                raise BadParameter(
                    "Where items are graded, a model is asked about one at a time.",
                    remedy="Leave out --items-per-request.",
                )
            judge.lists = ItemLists(campaign, assessor, terms.items_per_request, terms.tries_malformed)
        prices = terms.prices
        row = ModelJudge(
            assessor=assessor,
            model=terms.model,
            address=str(endpoint.address),
            prompt=terms.prompt.title,
            prompt_hash=terms.prompt.hash,
            prompt_text=terms.prompt_text,
            parameters=terms.parameters,
            secret=secrets.token_hex(16),
            price_in=prices.sent if prices else None,
            price_out=prices.received if prices else None,
            budget=terms.budget,
        )
        known = campaign.read(holdings.assessors).get(assessor)
        if known is not None and known.kind not in {"llm", "imported"}:
            raise BadParameter(
                f"The assessor '{assessor}' is not a model.", remedy="Choose another name: --assessor NAME."
            )
        campaign.enrol(assessor, "llm")

        def work(tx: Writing) -> ModelJudge:
            llm.close_open_calls(tx, assessor, judge.session)
            return llm.enrol(tx, row)

        judge.secret = campaign.write(work).secret
        return judge

    # ---- requests

    def reply_to(self, order: Order, sheet: Sheet) -> ModelReply:
        """Return the model's reply to a pair in this order, from the store or by requests."""
        campaign = self.campaign
        known = campaign.read(lambda tx: llm.reply(tx, self.assessor, order))
        if known is not None:
            return known
        request = self.terms.request(sheet, self.secret)
        base = ModelReply("malformed", request.hash, left_length=len(sheet.left.text))
        if sheet.right is not None:
            base = replace(base, right_length=len(sheet.right.text))

        def reply_of(verdict: Verdict, seconds: float) -> dict[Order, ModelReply]:
            said = {name: getattr(verdict, name) for name in ("outcome", "confidence", "grade")}
            return {order: replace(base, seconds=seconds, **said)}

        return self._send(request, reply_of)[order]

    def _ask_list(self, sheet: Sheet, listed: ItemList, items: tuple[str, ...]) -> bool:
        """Ask for the order of a list and store the replies to its pairs; return whether the reply was usable."""
        request = self.terms.request(sheet, self.secret, [listed.passages[item] for item in items])

        def replies_of(verdict: Verdict, seconds: float) -> dict[Order, ModelReply]:
            if verdict.outcome != "order":
                return {}
            base = ModelReply("malformed", request.hash, seconds=seconds)
            return unfolded(verdict, items, listed.passages, request.about, base)

        return bool(self._send(request, replies_of))

    def _send(self, request: ModelRequest, replies_of: Unfold) -> Mapping[Order, ModelReply]:
        """Send a request until its reply can be read, or no try is left, and return the replies that are stored."""
        malformed = failures = answered = 0
        prefix = f"{LISTED}: " if request.items else ""
        began = time.monotonic()
        while True:
            call = self._reserve(request)
            try:
                got = self.endpoint.post(request.body, f"{request.hash[:32]}-{answered}")
            except NotSent as error:
                self._settle(call, llm.FAILED, str(error))
                failures = self._wait_or_give_up(failures, str(error), None, request.hash)
                continue
            except NoAnswer as error:
                self._settle(call, llm.UNKNOWN, str(error))
                failures = self._wait_or_give_up(failures, str(error), None, request.hash)
                continue
            except DuelpoolError:  # a forbidden address: nothing was sent
                self._settle(call, llm.FAILED, "refused here")
                raise
            except BaseException:
                self._settle(call, llm.UNKNOWN, "interrupted")
                raise
            if got.status != 200:
                self._settle(call, llm.FAILED, f"status {got.status}")
                failures = self._refused(got, failures, request)
                continue
            answered += 1
            seconds = round(time.monotonic() - began, 3)
            try:
                verdict = parse_verdict(got.body, request.form)
                result = LISTED if verdict.outcome == "order" else f"{prefix}{verdict.outcome}"
            except Malformed as error:
                malformed += 1
                verdict, result = Verdict("malformed"), f"{prefix}malformed: {error}"
                if malformed < self.terms.tries_malformed:
                    self._store_response(call, got, request, result, {})
                    continue
            return self._store_response(call, got, request, result, replies_of(verdict, seconds))

    def _reserve(self, request: ModelRequest) -> int:
        if self.stopping.is_set():
            raise JudgeError("Judging was stopped.")
        prices, about = self.terms.prices, request.about
        most = prices.most(request.body, request.max_tokens) if prices else 0
        call = self.campaign.write(
            lambda tx: llm.reserve(tx, self.assessor, about, most, session=self.session, items=request.items)
        )
        if call is None:
            raise OutOfBudget
        return call

    def _settle(self, call: int, state: str, result: str) -> None:
        self.campaign.write(lambda tx: llm.settle(tx, call, state, result))
        self.settled += 1

    def _store_response(
        self,
        call: int,
        got: Response,
        request: ModelRequest,
        result: str,
        replies: Mapping[Order, ModelReply],
    ) -> Mapping[Order, ModelReply]:
        """Store a response, its cost and the replies that it gives in one transaction; return those that are kept."""
        usage, prices = parse_usage(got.body), self.terms.prices
        sent = usage.sent if usage.sent is not None else most_tokens(request.body)
        received = usage.received if usage.received is not None else request.max_tokens
        over = sent > most_tokens(request.body) or received > request.max_tokens

        def work(tx: Writing) -> dict[Order, ModelReply]:
            llm.settle(
                tx,
                call,
                llm.ANSWERED,
                result,
                cost=prices.cost(sent, received) if prices else 0,
                tokens_in=usage.sent,
                tokens_out=usage.received,
            )
            return {
                order: llm.store_reply(tx, self.assessor, order, reply) for order, reply in replies.items()
            }

        stored = self.campaign.write(work)
        self.settled += 1
        if over and prices is not None:
            raise EndpointRefuses(
                "The server reports more tokens than the request can have, so the budget can't be guaranteed.",
                remedy="Check its bill. If it bills hidden tokens, raise --max-tokens.",
            )
        return stored

    # ---- failures

    def _refused(self, got: Response, failures: int, request: ModelRequest) -> int:
        if got.status < 500 and got.status not in _RETRY:
            remedies = {
                400: "It may not know the reply's form (--reply-format json or none) or a parameter"
                f"{', or the list is too long (--items-per-request)' if request.items else ''}.",
                401: "Check the API key in the environment variable.",
                403: "Check what the API key may do.",
                404: "Check the URL and the model's name.",
            }
            moved = 300 <= got.status < 400
            raise EndpointRefuses(
                f"The model's API answered with status {got.status}.",
                remedy="Redirects aren't followed: give the final URL."
                if moved
                else remedies.get(got.status, "See the API's documentation."),
            )
        return self._wait_or_give_up(failures, f"status {got.status}", got.retry_after, request.hash)

    def _wait_or_give_up(self, failures: int, what: str, retry_after: float | None, request: str) -> int:
        """Wait before another try, longer each time, or raise JudgeError; return the number of failures."""
        failures += 1
        if failures >= self.terms.tries or (retry_after or 0) > WAIT_AT_MOST:
            raise JudgeError(
                f"The model's API didn't answer in {failures} tries; the last time: {what}.",
                remedy="Try again later; all replies so far are stored.",
            )
        spread = rng_for(0, "back-off", self.session, request, failures).uniform(0.5, 1.0)
        pause = min(self.terms.first_wait * 2.0 ** (failures - 1), WAIT_AT_MOST) * float(spread)
        self.stopping.wait(pause if retry_after is None else max(retry_after, 0.0))
        return failures

    # ---- answers

    def answer(self, sheet: Sheet) -> Answer:
        """Return the answer to a question: a pair is shown in both orders, and the two replies must agree."""
        if why := unreadable_because(sheet):
            return Answer(Outcome.CANNOT_JUDGE, note=f"{self._signature()}; {why}")
        if self.lists is not None:
            self._ask_lists(sheet, self.lists)
        first = self.reply_to(_order(sheet), sheet)
        if sheet.right is None:
            return _graded(first, self._signature(first))
        swapped = replace(sheet, left=sheet.right, right=sheet.left)
        second = self.reply_to(_order(swapped), swapped)
        signature = self._signature(first, second)
        return combined(first, second, flips=self.campaign.settings.flips, signature=signature)

    def _ask_lists(self, sheet: Sheet, lists: ItemLists) -> None:
        """Ask about a list with both items of a question, if there is one to ask about."""
        listed = lists.take(sheet)
        if listed is None:
            return
        try:
            for items in listed.orders:
                if not self._ask_list(sheet, listed, items):
                    lists.count_unusable()
                    return
        finally:
            lists.end(listed)

    def _signature(self, *replies: ModelReply) -> str:
        lists = [each.listed for each in replies if each.listed]
        prompts = [] if lists and len(lists) == len(replies) else [_named(self.terms.prompt)]
        parts = [f"model {self.terms.model}"]
        if lists:
            prompts.append(_named(self.terms.list_prompt))
        parts.append(f"prompt {' and '.join(prompts)}")
        if lists:
            parts.append(f"{'' if len(lists) == len(replies) else 'one order '}from a list of {max(lists)}")
        return "; ".join(parts)


def _named(prompt: Prompt) -> str:
    return f"{prompt.title} {prompt.hash}"


def _order(sheet: Sheet) -> Order:
    return Order(
        sheet.topic.id, sheet.criterion, sheet.left.id, "" if sheet.right is None else sheet.right.id
    )


_OTHER_SIDE = {"left": "right", "right": "left"}


def combined(first: ModelReply, second: ModelReply, *, flips: str, signature: str = "") -> Answer:
    """Return the answer that two replies give, in terms of the first one's sides; the second saw them swapped."""
    turned = _OTHER_SIDE.get(second.outcome, second.outcome)
    note = f"{signature}; as shown: {_text_of(first)}; sides changed: {_text_of(second)}".removeprefix("; ")
    seconds = round(first.seconds + second.seconds, 3)
    if not {first.outcome, turned} <= {"left", "right", "tie"}:
        return Answer(Outcome.CANNOT_JUDGE, note=note, seconds=seconds)
    if first.outcome != turned:
        outcome = Outcome.FLIP_ABSTAIN if flips == "abstain" else Outcome.FLIP_TIE
        return Answer(outcome, note=note, seconds=seconds)
    confidences = [each.confidence for each in (first, second) if each.confidence is not None]
    confidence = round(sum(confidences) / len(confidences), 4) if confidences else None
    return Answer(Outcome(turned), confidence=confidence, note=note, seconds=seconds)


def _graded(reply: ModelReply, signature: str) -> Answer:
    note = f"{signature}; {_text_of(reply)}"
    if reply.outcome != "grade":
        return Answer(Outcome.CANNOT_JUDGE, note=note, seconds=reply.seconds)
    return Answer(
        Outcome.GRADE, grade=reply.grade, confidence=reply.confidence, note=note, seconds=reply.seconds
    )


def _text_of(reply: ModelReply) -> str:
    what = reply.outcome if reply.grade is None else f"{reply.grade:g}"
    return what if reply.confidence is None else f"{what} {100 * reply.confidence:.0f}"
