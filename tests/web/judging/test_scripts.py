"""Unit tests of the page's scripts in a browser: the outbox and the keys."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from support.browsing import People, Person, Site

SCRIPTS = """const url = document.querySelector('script[type=module]').src;
  const js = name => import(url.replace('poll', name));"""

# A server that fails as it is told to, and a clock that jumps: what is stored, in which order, how often?
OUTBOX = f"""async cases => {{
  {SCRIPTS}
  const {{ Outbox }} = await js('outbox');
  const later = [];
  const realTimeout = window.setTimeout, realClear = window.clearTimeout;
  window.setTimeout = (work) => later.push(work);
  window.clearTimeout = (id) => {{ if (id) later[id - 1] = null; }};
  const calm = async () => {{ for (let at = 0; at < 5; at++) await new Promise(done => realTimeout(done)); }};
  const results = [];
  try {{
    for (const [number, [answers, failures, restart]] of cases.entries()) {{
      const stored = [], seen = [], settled = [];
      const fate = [...failures];
      const send = async answer => {{
        const what = fate.shift() ?? 200;
        if (what === 'lost') throw new TypeError('no network');
        if (what === 'unheard' || what === 200) {{
          if (!seen.includes(answer.question)) stored.push(answer.question);
          seen.push(answer.question);
        }}
        if (what === 'unheard') throw new TypeError('the reply got lost');
        return {{ status: what, body: {{}} }};
      }};
      const name = `test ${{number}}`;
      const make = () => new Outbox(name, send, {{ storage: localStorage,
        settled: (answer, reply) => settled.push([answer.question, reply.status]) }});
      let outbox = make();
      for (const [at, question] of answers.entries()) {{
        if (at === restart) {{ await outbox.pump(); outbox = make(); outbox.pump(); }}
        outbox.add({{ question, attempt: 1, outcome: 'left' }});
        outbox.add({{ question, attempt: 1, outcome: 'right' }});
      }}
      for (let round = 0; round < 60 && outbox.waiting.length; round++) {{
        await calm();
        const due = later.splice(0).filter(Boolean);
        due.forEach(work => work());
        if (!due.length) outbox.pump();
      }}
      await outbox.pump();
      results.push({{ stored, settled, left: outbox.waiting.length, trouble: outbox.trouble,
        kept: localStorage.getItem(name) }});
    }}
  }} finally {{
    window.setTimeout = realTimeout;
    window.clearTimeout = realClear;
  }}
  return results;
}}"""


@pytest.fixture
def bench(site: Site, people: People) -> Person:
    """Return an idle page of ours."""
    campaign = site.crowd()
    campaign.set_state("paused")
    person = people()
    person.enter(site.link(campaign))
    person.wait_for_state("paused")
    return person


@pytest.mark.long
def test_the_outbox_stores_each_answer_once_in_order_despite_failures(bench: Person) -> None:
    fates = st.lists(st.sampled_from(["lost", "unheard", 500, 503, 429, 200, 403]), max_size=12)
    case = st.tuples(st.integers(1, 6).map(lambda n: [f"q{at}" for at in range(n)]), fates, st.integers(0, 7))

    @settings(max_examples=4, phases=[Phase.generate])
    @given(st.lists(case, min_size=12, max_size=16))
    def hold(cases: list[Any]) -> None:
        results = bench.page.evaluate(OUTBOX, cases)
        for (answers, fate, restart), result in zip(cases, results, strict=True):
            about = (answers, fate, restart)
            assert result["stored"] == answers, about
            assert [question for question, _ in result["settled"]][-1] == answers[-1]
            assert (result["left"], result["trouble"], result["kept"]) == (0, "", None), about

    hold()


def test_the_outbox_drops_refused_answers_and_continues(bench: Person) -> None:
    statuses = [409, 410, 404, 422, 413]
    answers = [f"q{at}" for at in range(6)]
    (result,) = bench.page.evaluate(OUTBOX, [[answers, statuses, 9]])
    assert result["settled"] == [
        [question, status] for question, status in zip(answers, [*statuses, 200], strict=True)
    ]
    assert result["stored"] == ["q5"]
    assert result["left"] == 0


def test_the_outbox_works_in_memory_without_storage(bench: Person) -> None:
    waiting = bench.page.evaluate(
        f"""async () => {{
          {SCRIPTS}
          const {{ Outbox }} = await js('outbox');
          const full = {{ getItem: () => null, setItem() {{ throw new Error('full'); }}, removeItem() {{}} }};
          const sent = [];
          const send = async answer => (sent.push(answer.question), {{ status: 200, body: {{}} }});
          const outbox = new Outbox('x', send, {{ storage: full }});
          outbox.add({{ question: 'a', attempt: 1 }});
          outbox.add({{ question: 'b', attempt: 1 }});
          await outbox.pump();
          return [sent, outbox.waiting.length];
        }}"""
    )
    assert waiting == [["a", "b"], 0]


def test_each_key_has_one_meaning_after_any_changes(bench: Person) -> None:
    """With any settings, every action has a key, and no key has two actions."""
    change = st.tuples(
        st.integers(0, 15), st.sampled_from([*"QPBTSXKUCNH?12Z", "ArrowLeft", "Shift+ArrowLeft"])
    )

    @settings(max_examples=10, phases=[Phase.generate])
    @given(st.lists(st.lists(change, max_size=8), min_size=10, max_size=12))
    def hold(cases: list[list[tuple[int, str]]]) -> None:
        results = bench.page.evaluate(
            f"""async cases => {{
              {SCRIPTS}
              const {{ DEFAULTS, Keymap }} = await js('keys');
              const actions = Object.keys(DEFAULTS);
              return cases.map(changes => {{
                const map = new Keymap();
                let set = true;
                for (const [at, key] of changes) {{
                  map.set(actions[at], key);
                  set &&= map.action(key) === actions[at];
                }}
                return [set, actions.map(action => map.of(action))];
              }});
            }}""",
            cases,
        )
        for was_set, keys in results:
            assert was_set
            flat = [key for each in keys for key in each]
            assert len(flat) == len(set(flat))
            assert all(keys)

    hold()


def test_other_keys_and_text_fields_are_left_alone(bench: Person) -> None:
    heard = bench.page.evaluate(
        f"""async () => {{
          {SCRIPTS}
          const {{ pressed }} = await js('keys');
          const press = (given, target = document.body) => {{
            let name;
            const hear = event => (name = pressed(event));
            document.addEventListener('keydown', hear, {{ once: true }});
            target.dispatchEvent(new KeyboardEvent('keydown', {{ bubbles: true, key: 'q', ...given }}));
            return name;
          }};
          const field = document.querySelector('main').appendChild(document.createElement('input'));
          const ours = [{{}}, {{ key: 'ArrowLeft', shiftKey: true }}, {{ key: '?', shiftKey: true }}];
          const not = ['repeat', 'ctrlKey', 'altKey', 'metaKey', 'isComposing'].map(name => ({{ [name]: true }}));
          return [...[...ours, ...not].map(each => press(each)), press({{}}, field)];
        }}"""
    )
    assert heard == ["Q", "Shift+ArrowLeft", "?", None, None, None, None, None, None]
