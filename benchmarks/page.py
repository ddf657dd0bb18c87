"""How long people wait at the judging page, measured in the browser, on this machine.

Three times: from a key to the next pair on screen when it is there already (aim: one frame), from the request to
the first pair (aim: 200 ms), and for marking a question's words in a passage of a megabyte (aim: 50 ms). The
opponents are the usual ways: a form that is sent and answered with a page, and marks that are put into the text as
elements.

python benchmarks/page.py [--pairs 100] [--loads 20]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.browsing import People, Person, Site, open_browser, open_site

FRAME = 1000 / 60

PAINTED = """() => {
  window.times = [];
  addEventListener('keydown', () => { window.began = performance.now(); }, true);
  addEventListener('keydown', () => {
    const worked = performance.now() - window.began;
    const channel = new MessageChannel();  // its message comes right after the frame that shows the change
    channel.port1.onmessage = () => window.times.push([worked, performance.now() - window.began]);
    requestAnimationFrame(() => channel.port2.postMessage(0));
  });
}"""

MARKS = """async () => {
  const js = document.querySelector('script[type=module]').src;
  const { mark, unmark } = await import(js.replace('page', 'highlight'));
  const words = ('the moon pulls harder on the near side of the earth than on the far side and so the tides come '
    + 'and nobody who lives by the water needs to be told when it is time to bring the boats in').split(' ');
  let text = '';
  for (let at = 0; text.length < 1e6; at++) {
    text += words[(at * 7 + (at >> 3)) % words.length] + (at % 90 ? ' ' : '.\\n\\n');
  }
  const home = document.querySelector('#left .body');
  const terms = ['tides', 'moon', 'earth'];
  const times = { ours: [], usual: [], places: 0 };
  const clock = async (work) => {
    home.replaceChildren(Object.assign(document.createElement('div'), { className: 'text plain', textContent: text }));
    home.offsetHeight;
    const began = performance.now();
    const result = work();
    return [performance.now() - began, result];
  };
  const usual = () => {
    const node = home.firstChild.firstChild, made = document.createDocumentFragment();
    let from = 0;
    for (const match of node.data.matchAll(/\\b(?:tides|moon|earth)\\b/giu)) {
      made.append(node.data.slice(from, match.index));
      made.append(Object.assign(document.createElement('mark'), { textContent: match[0] }));
      from = match.index + match[0].length;
    }
    made.append(node.data.slice(from));
    node.replaceWith(made);
    home.offsetHeight;  // the text is another one now, and is laid out anew
  };
  for (let at = 0; at < 5; at++) {
    const [ours, places] = await clock(() => mark([home], terms));
    unmark();
    times.ours.push(ours);
    times.places = places;
    times.usual.push((await clock(usual))[0]);
  }
  return times;
}"""


def summary(name: str, times: Sequence[float], aim: float | None = None) -> float:
    """Print a line of the table; return the median."""
    middle = statistics.median(times)
    high = sorted(times)[int(0.95 * (len(times) - 1))]
    verdict = "" if aim is None else f"   aim {aim:6.1f}: {'holds' if middle <= aim else 'MISSED'}"
    print(f"{name:<58} median {middle:7.1f} ms   95 % {high:7.1f} ms{verdict}")
    return middle


def next_pair(site: Site, people: People, pairs: int) -> tuple[list[float], list[float]]:
    """Judge with keys; return the times of the script and until the next pair is painted."""
    campaign = site.crowd(targets=pairs, tests=0, known=0, topics=pairs // 3 + 1, items=8, cap=2)
    person = people()
    person.enter(site.link(campaign))
    last = person.wait_for_pair()
    person.page.evaluate(PAINTED)
    for _ in range(pairs - 1):
        person.page.keyboard.press("ArrowLeft")
        last = person.wait_for_pair(last)
    times: list[list[float]] = person.page.evaluate("window.times")
    return [worked for worked, _ in times], [painted for _, painted in times]


def next_page(site: Site, people: People, pairs: int) -> list[float]:
    """Judge with plain forms, as a page without a script does; return the times from one pair to the next."""
    campaign = site.crowd(targets=pairs, tests=0, known=0, topics=pairs // 3 + 1, items=8, cap=2)
    person = people()
    person.page.route("**/js/page.js", lambda route: route.abort())
    person.enter(site.link(campaign))
    times = []
    for _ in range(pairs - 1):
        with person.page.expect_navigation(wait_until="load"):
            person.page.click('button.choice[value="left"]')
        times.append(painted_after(person))
    return times


def painted_after(person: Person) -> float:
    """Return the milliseconds from the start of the navigation to the first paint of what was asked for."""
    milliseconds: Any = person.page.evaluate(
        "() => new Promise(done => { const look = () => { "
        "const [paint] = performance.getEntriesByName('first-contentful-paint'); "
        "if (paint) done(paint.startTime); else setTimeout(look, 5); }; look(); })"
    )
    return float(milliseconds)


def first_pair(site: Site, people: People, loads: int, *, fresh: bool) -> list[float]:
    """Open the page again and again, with empty caches or with the files kept; return the times to the first paint."""
    campaign = site.crowd()
    times = []
    person = people()
    person.enter(site.link(campaign))
    person.wait_for_pair()
    for _ in range(loads):
        if fresh:
            state = person.context.storage_state()
            person = people(storage_state=state)
        person.enter(f"{site.address}/j/{campaign.id}/")
        times.append(painted_after(person))
        person.wait_for_pair()
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--loads", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser, open_site(Path(folder)) as site:
        people = People(browser, site)
        worked, painted = next_pair(site, people, options.pairs)
        summary("from a key to the next pair: the script", worked)
        ours = summary("from a key to the next pair on screen, prefetched", painted, FRAME)
        usual = summary(
            "  a form that is answered with a page", next_page(site, people, min(options.pairs, 30))
        )
        print(f"  {usual / ours:.1f} times as long\n")
        summary(
            "from the request to the first pair, files kept",
            first_pair(site, people, options.loads, fresh=False),
            200,
        )
        summary(
            "from the request to the first pair, empty caches",
            first_pair(site, people, options.loads, fresh=True),
            200,
        )
        person = people()
        person.enter(site.link(site.campaign(), "marks"))
        person.wait_for_pair()
        times = person.page.evaluate(MARKS)
        print(f"\n{times['places']} places in a passage of a megabyte")
        ours = summary("marking them", times["ours"], 50)
        usual = summary("  marks as elements in the text", times["usual"])
        print(f"  {usual / ours:.1f} times as long")
        people.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
