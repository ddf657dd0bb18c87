"""The contract that every decider keeps, as code: the choice of questions over all topics.

    from duelpool.testing import decider_contract
    decider_contract("round-robin")      # raises ContractError, which names the broken promise

A name is that of a row of `DECIDERS`, with or without parameters, `by-topic` with a strategy's name after a space,
`compare` for two systems, with a decider's name after a space, or `spend` with a way to spend after a space. Each check
of `DECIDER_CHECKS` plays a whole campaign in memory.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from duelpool.deciders import (
    Asked,
    CampaignGoal,
    Deciding,
    Draw,
    Spend,
    Stake,
    TopicPool,
    VoteSource,
    Weighs,
    make_decider,
    read_spend,
    staged_topic,
)
from duelpool.records import Judgment, Outcome, PhaseClosed, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies import Strategy, make_strategy
from duelpool.testing.assessors import noisy, pool_of
from duelpool.testing.promises import require
from duelpool.testing.strategies import state_of

Event = Judgment | PhaseClosed
Answers = Callable[[str, str], Outcome]

TOPICS = ("q1", "q2", "q3", "q4")
SYSTEMS = ("alpha", "beta", "gamma", "delta", "epsilon")  # the truly best first
CAP = 3
SEEDS = (1, 2)
ODD = (Outcome.TIE, Outcome.LEFT_BAD, Outcome.RIGHT_BAD, Outcome.BOTH_BAD, Outcome.SKIP)
_BY_TOPIC = "by-topic"
_SPEND = "spend"
_JUDGMENTS = 60


def pools_of(topics: Sequence[str] = TOPICS, systems: Sequence[str] = SYSTEMS) -> list[TopicPool]:
    """Return pools in which each system gave an answer of its own, named so that ids tell nothing."""
    pools = []
    for topic in topics:
        names = dict(zip(SYSTEMS, pool_of(len(SYSTEMS)), strict=True))
        answers = {system: f"{topic}-{names[system]}" for system in systems}
        items = tuple(sorted(answers.values()))
        pools.append(TopicPool(topic, items, items, answers=answers))
    return pools


def truth_of(pool: TopicPool) -> list[str]:
    """Return a pool's items, the truly best first."""
    return [pool.answers[system] for system in SYSTEMS if system in pool.answers]


def contract_decider(name: str, seed: int, pools: Sequence[TopicPool], cap: int = CAP) -> Deciding:
    """Return a decider over pools, as the contract makes it."""
    kind, _, strategy = name.partition(" ")
    goal = CampaignGoal("compare", SYSTEMS[1:3]) if kind == "compare" else CampaignGoal("systems")
    if kind in (_BY_TOPIC, _SPEND):
        goal = CampaignGoal()
    spend = read_spend(strategy) if kind == _SPEND else Spend()

    def make(pool: TopicPool) -> Strategy:
        if kind == _SPEND:
            scores = {system: {item: 1.0} for system, item in pool.answers.items()}
            stake = Stake.of(spend, pool.items, scores)
            spec = "swissfinals:finalists=4"
            return staged_topic(spec, pool.items, stake, seed=seed, topic=pool.topic, cap=cap)
        return make_strategy(strategy, pool.items, seed=seed, topic=pool.topic, cap=cap)

    spec = (strategy or "round-robin") if kind == "compare" else kind
    return Deciding(
        make_decider(goal, spec, seed=seed, cap=cap, make=make, spend=spend, judgments=_JUDGMENTS), pools
    )


@dataclass
class CampaignLoop:
    """A decider, an assessor for each topic, and the logs between them."""

    name: str
    seed: int
    odd: tuple[Outcome, ...] = ()
    pools: Sequence[TopicPool] = field(default_factory=pools_of)
    cap: int = CAP

    def __post_init__(self) -> None:
        """Begin."""
        self.deciding = contract_decider(self.name, self.seed, self.pools, self.cap)
        self.log: list[tuple[str, Event]] = []
        self.answers: dict[str, Answers] = {}
        for pool in self.pools:
            self.add_assessor(pool)
        self._closings: Counter[str] = Counter()

    def add_assessor(self, pool: TopicPool) -> None:
        """Let an assessor judge a topic who is right three times of four, or always when nothing is odd."""
        truth = truth_of(pool)
        place = {item: at for at, item in enumerate(truth)}
        if self.odd:
            self.answers[pool.topic] = noisy(truth, self.seed, self.odd)
        else:
            self.answers[pool.topic] = lambda left, right: (
                Outcome.LEFT if place[left] < place[right] else Outcome.RIGHT
            )

    def judge(self, asked: Asked) -> None:
        """Let the assessor judge; log what they say, unless it is no answer, and the phases that it closed."""
        topic, proposal = asked
        left, right = proposal.pair
        if rng_for(self.seed, "side", len(self.log)).random() < 0.5:
            left, right = right, left
        outcome = self.answers[topic](left, right)
        if outcome is Outcome.SKIP:
            return
        judgment = Judgment(
            *(topic, left, right, outcome),
            phase=proposal.phase,
            proposal=proposal.proposal,
            assessor=f"assessor-{len(self.log)}",
        )
        self.deciding.tell(topic, judgment)
        self.log.append((topic, judgment))
        closed = self.deciding.closed[topic]
        self.log += [(topic, closing) for closing in closed[self._closings[topic] :]]
        self._closings[topic] = len(closed)

    def rounds(self, batch: int, limit: int = 2_000) -> Iterator[list[Asked]]:
        """Ask for a batch, yield it, judge it, until the decider is done."""
        number = 0
        while not self.deciding.done:
            asked = self.deciding.ask(batch)
            require(bool(asked), "Not done and nothing pending: it must ask", events=len(self.log))
            yield asked
            for each in asked:
                self.judge(each)
            number += 1
            require(number <= limit, "It must end", events=len(self.log))
        require(not self.deciding.ask(batch), "When it is done it doesn't ask")

    def play(self, batch: int = 3) -> "CampaignLoop":
        """Judge until the decider is done."""
        for _ in self.rounds(batch):
            pass
        return self

    def replayed(self, log: Sequence[tuple[str, Event]] | None = None) -> Deciding:
        """Return a new decider that was told the log, or another one."""
        again = contract_decider(self.name, self.seed, self.pools, self.cap)
        for topic, event in self.log if log is None else log:
            again.tell(topic, event)
        return again

    @property
    def judgments(self) -> list[Judgment]:
        """The judgments of all topics."""
        return [event for _, event in self.log if isinstance(event, Judgment)]


def same_decisions(one: Deciding, other: Deciding) -> bool:
    """Whether two have the same parts, bit for bit, and decide the same."""
    same = _decisions(one) == _decisions(other)  # fills what is computed on demand
    parts = [{topic: state_of(each.parts[topic]) for topic in sorted(each.parts)} for each in (one, other)]
    return same and parts[0] == parts[1]


def _decisions(deciding: Deciding) -> tuple[object, ...]:
    return (deciding.ask(99), deciding.done, deciding.closed, deciding.result())


# ---- the checks


def check_finds(name: str) -> None:
    """With a judge who never errs, it finds the best items, or the order of the systems."""
    for seed in SEEDS:
        loop = CampaignLoop(name, seed).play()
        topics, systems = loop.deciding.result()
        wanted = [name for name in SYSTEMS if name in loop.deciding.decider.goal.systems] or list(SYSTEMS)
        if systems is not None:
            levels = tuple((system,) for system in wanted)
            require(systems.levels == levels, "It finds the order of systems", levels=systems.levels)
        else:
            for pool in loop.pools:
                best = topics[pool.topic].best
                require(truth_of(pool)[0] in best, "It finds the best", topic=pool.topic, best=best)


def check_replay(name: str) -> None:
    """Replayed from the log it equals the live one, bit for bit, and asks the same."""
    for seed in SEEDS:
        loop = CampaignLoop(name, seed, ODD)
        for number, _ in enumerate(loop.rounds(3)):
            if number & (number - 1) == 0:
                require(same_decisions(loop.deciding, loop.replayed()), "Replay equals live", seed=seed)
        require(same_decisions(loop.deciding, loop.replayed()), "Replay equals live at the end", seed=seed)


def check_order_between_topics(name: str) -> None:
    """The order of judgments between topics doesn't matter, only that within each topic."""
    loop = CampaignLoop(name, 1, ODD)
    for number, _ in enumerate(loop.rounds(3)):
        if number in (1, 4, 9):
            for shuffle in range(3):
                other = loop.replayed(interleaved(loop.log, shuffle))
                require(same_decisions(loop.deciding, other), "The order between topics doesn't matter")


def interleaved(log: Sequence[tuple[str, Event]], seed: int) -> list[tuple[str, Event]]:
    """Return a log with its topics interleaved otherwise, each topic's lines in their order."""
    left: dict[str, list[Event]] = {}
    for topic, event in log:
        left.setdefault(topic, []).append(event)
    rng = rng_for(seed, "interleave", len(log))
    order = rng.permutation([topic for topic, _ in log]).tolist()
    return [(topic, left[topic].pop(0)) for topic in order]


def check_prefix(name: str) -> None:
    """The first k questions are the same whether k or more are asked for; asking changes nothing."""
    loop = CampaignLoop(name, 1, ODD)
    for number, _ in enumerate(loop.rounds(3)):
        if number % 4 == 0:
            before = loop.deciding.ask(1)
            for pending in ({}, _by_topic(loop.deciding.ask(2))):
                asked = loop.deciding.ask(6, pending)
                prefixes = (loop.deciding.ask(k, pending) == asked[:k] for k in (0, 1, 2, 5))
                require(all(prefixes), "Asking for k is a prefix of asking for n", asked=asked)
            require(loop.deciding.ask(1) == before, "Asking changes nothing")


def check_pending(name: str) -> None:
    """A pending pair isn't asked again until it is no longer pending."""
    loop = CampaignLoop(name, 2, ODD)
    for number, _ in enumerate(loop.rounds(3)):
        if number % 4 == 0:
            pending = loop.deciding.ask(4)
            more = loop.deciding.ask(10, _by_topic(pending))
            pairs = [(each.topic, each.proposal.pair) for each in (*pending, *more)]
            require(len(set(pairs)) == len(pairs), "A pending pair isn't asked again", pairs=pairs)


def check_cap(name: str) -> None:
    """No pair is judged more often than its cap, whatever the size of a batch."""
    for cap in (1, 2):
        for batch in (1, 10):
            loop = CampaignLoop(name, 3, ODD, cap=cap).play(batch)
            most = max(Counter((each.topic, each.pair) for each in loop.judgments).values(), default=0)
            require(most <= cap, "The cap is kept", cap=cap, judged=most)


def check_live(name: str) -> None:
    """With several assessors, who answer in any order or not at all, it ends, and keeps the cap."""
    for seed in SEEDS:
        loop = CampaignLoop(name, seed, ODD)
        pending: list[Asked] = []
        for step in range(5_000):
            pending += loop.deciding.ask(4 - len(pending), _by_topic(pending))
            pairs = Counter((each.topic, each.proposal.pair) for each in pending)
            require(max(pairs.values(), default=0) <= 1, "A pending pair isn't asked again", pairs=pairs)
            pairs.update((each.topic, each.pair) for each in loop.judgments)
            require(max(pairs.values(), default=0) <= CAP, "Judged and pending keep to the cap")
            if not pending:
                break
            rng = rng_for(seed, "live", step)
            asked = pending.pop(int(rng.integers(len(pending))))
            if rng.random() >= 0.1:
                loop.judge(asked)
        require(loop.deciding.done and not pending, "It must end, with answers in any order too")


def check_among(name: str) -> None:
    """Only the topics that may be asked about are asked about, and the others keep their questions."""
    loop = CampaignLoop(name, 1)
    some = TOPICS[1:3]
    asked = loop.deciding.ask(50, among=some)
    require({each.topic for each in asked} == set(some), "It asks about the given topics only")
    again = {each.topic for each in loop.deciding.ask(200)}
    require(again == set(TOPICS), "It asks about all topics when all are given", topics=again)


def check_draw(name: str) -> None:
    """Drawn questions are open ones, each once, few of a topic first; the generator fixes them."""
    loop = CampaignLoop(name, 1, ODD)
    for number, _ in enumerate(loop.rounds(3)):
        if number > 6:
            break
        everything = {(each.topic, each.proposal.pair) for each in loop.deciding.ask(10_000)}
        drawn = loop.deciding.ask(10_000, draw=Draw(rng_for(7, "draw", number), 2))
        pairs = [(each.topic, each.proposal.pair) for each in drawn]
        require(len(set(pairs)) == len(pairs), "No question is drawn twice", pairs=pairs)
        require(set(pairs) == everything, "Every open question can be drawn", missing=everything - set(pairs))
        again = loop.deciding.ask(10_000, draw=Draw(rng_for(7, "draw", number), 2))
        require(again == drawn, "The generator fixes the draw")
        by_topic = Counter(topic for topic, _ in everything)
        few = sum(min(2, count) for count in by_topic.values())
        most = max(Counter(each.topic for each in drawn[:few]).values(), default=0)
        require(most <= 2, "Few of a topic are drawn first", most=most)
        chances = [each.proposal.propensity for each in drawn]
        require(
            all(chance is None or 0 < chance <= 1 for chance in chances), "A propensity is above 0, at most 1"
        )


def check_chances(name: str) -> None:
    """Where a draw states propensities, they are those with which questions are drawn."""
    loop = CampaignLoop(name, 1, ODD)
    for number, _ in enumerate(loop.rounds(3)):
        if number == 3:
            break
    if (
        loop.deciding.done
        or loop.deciding.ask(1, draw=Draw(rng_for(0, "chance"), 2))[0].proposal.propensity is None
    ):
        return
    draws = 500
    drawn: Counter[tuple[str, tuple[str, str]]] = Counter()
    chances: dict[tuple[str, tuple[str, str]], float] = {}
    for at in range(draws):
        topic, proposal = loop.deciding.ask(1, draw=Draw(rng_for(at, "chance"), 2))[0]
        drawn[topic, proposal.pair] += 1
        chances[topic, proposal.pair] = proposal.propensity or 0.0
    require(abs(sum(chances.values()) - 1) < 1e-9, "The chances of the first question add up to 1")
    for question, chance in chances.items():
        spread = 5 * (draws * chance * (1 - chance)) ** 0.5
        require(abs(drawn[question] - draws * chance) <= spread, "A question is drawn with its propensity")


def check_retraction(name: str) -> None:
    """A topic told again without a judgment is as if that had never been; other topics stay as they are."""
    loop = CampaignLoop(name, 2, ODD)
    for number, _ in enumerate(loop.rounds(3)):
        if number != 4:
            continue
        # A closing fixes what earlier lines decided, so only topics without one are told again here.
        closed = {topic for topic, event in loop.log if isinstance(event, PhaseClosed)}
        places = [at for at, (topic, _) in enumerate(loop.log) if topic not in closed]
        if not places:
            return
        gone = places[len(places) // 2]
        topic = loop.log[gone][0]
        kept = [each for at, each in enumerate(loop.log) if at != gone]
        live = loop.replayed()
        live.restart(next(pool for pool in loop.pools if pool.topic == topic))
        for where, event in kept:
            if where == topic:
                live.tell(topic, event)
        require(same_decisions(live, loop.replayed(kept)), "A retraction replays one topic only", topic=topic)
        return


def check_late(name: str) -> None:
    """A topic that comes later is asked about, and so is a system whose answers join; earlier judgments stay.

    Late items of a topic that looks for its best are a challenge of the campaign, which the strategy never sees.
    """
    first = SYSTEMS if name.startswith(_BY_TOPIC) else SYSTEMS[:3]
    loop = CampaignLoop(name, 1, pools=pools_of(TOPICS[:2], first)).play()
    counted = len(loop.judgments)
    late = pools_of(TOPICS[:3])
    for pool in late:
        loop.deciding.restart(pool)
        loop.add_assessor(pool)
    loop.pools = late
    for topic, event in loop.log:
        loop.deciding.tell(topic, event)
    require(not loop.deciding.done, "Late topics and items are asked about")
    loop.play()
    require(len(loop.judgments) > counted, "Late topics and items are judged")
    require(same_decisions(loop.deciding, loop.replayed()), "Replay equals live after late items")


def check_never_who(name: str) -> None:
    """Who judged doesn't matter: under other names, the same decisions."""
    loop = CampaignLoop(name, 1, ODD)
    for number, _ in enumerate(loop.rounds(3)):
        if number == 5:
            break
    renamed = [
        (topic, replace(event, assessor=f"{event.assessor}-x") if isinstance(event, Judgment) else event)
        for topic, event in loop.log
    ]
    require(_decisions(loop.deciding) == _decisions(loop.replayed(renamed)), "It never knows who judges")


def check_weights(name: str) -> None:
    """A weight of 1 changes nothing; where judgments are weighed, one of weight 0 counts for no side."""
    loop = CampaignLoop(name, 1, ODD).play()
    weighed = contract_decider(name, 1, loop.pools)
    for topic, event in loop.log:
        weighed.tell(topic, event, VoteSource(weight=1.0))
    require(same_decisions(loop.deciding, weighed), "A weight of 1 changes nothing")
    if not all(isinstance(part, Weighs) for part in weighed.parts.values()):
        return
    without = contract_decider(name, 1, loop.pools)
    for topic, event in loop.log:
        without.tell(topic, event, VoteSource(weight=0.0))
    levels = without.result().systems
    require(levels is not None and len(levels.levels) == 1, "A weight of 0 counts for no side", levels=levels)


def _by_topic(asked: Sequence[Asked]) -> Mapping[str, list[Proposal]]:
    pending: dict[str, list[Proposal]] = {}
    for topic, proposal in asked:
        pending.setdefault(topic, []).append(proposal)
    return pending


DECIDER_CHECKS: tuple[Callable[[str], None], ...] = (
    check_finds,
    check_replay,
    check_order_between_topics,
    check_prefix,
    check_pending,
    check_cap,
    check_live,
    check_among,
    check_draw,
    check_chances,
    check_retraction,
    check_late,
    check_never_who,
    check_weights,
)


def decider_contract(name: str) -> None:
    """Run every check over a decider."""
    for check in DECIDER_CHECKS:
        check(name)
