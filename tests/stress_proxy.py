"""Behind nginx, with the configurations that the docs give: a person in a browser, a crowd, and servers that die.

python tests/stress_proxy.py [--people 50] [--seconds 60]

  guide    operation.md's, by https, before one server on SQLite: judge, sign in, watch, send a large file
  compose  compose.yaml's, before two servers on PostgreSQL that start at once on an empty database: set a campaign
           up, then many people judge while one server after the other is killed and comes back
"""

import argparse
import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from textwrap import dedent

from playwright.sync_api import FilePayload, Page

from duelpool.store import Store, open_store
from duelpool.web.access.links import link_keys
from duelpool.web.setup.keys import setup_address, setup_key
from support.browsing import PATIENCE, open_browser, wait_in
from support.serving import Server, begin, free_port, serving
from support.simulated_visitors import MEDIAN, Seen, doors_of, set_up, verdict, visit_all
from support.stores import new_target

DOCS = Path(__file__).parent.parent / "docs"
NAME, PASSWORD = "anna", "a long password for the proxy"
DOWN_SECONDS = 3.0
LARGE = 4_000_000  # characters of a run: more than any other request may have
SHELL = """
worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/error.log warn; daemon off;
events {{ worker_connections 1024; }}
http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
{server}
}}
"""


def guide_configuration() -> str:
    """Return the configuration that the page on operation gives."""
    text = (DOCS / "operation.md").read_text(encoding="utf-8")
    return dedent(text.split("\n## nginx\n\n", 1)[1].split("\n\n", 1)[0])


def compose_configuration() -> str:
    """Return the configuration that the compose file gives its proxy."""
    text = (DOCS / "compose.yaml").read_text(encoding="utf-8")
    return dedent(text.split("    content: |\n", 1)[1].split("\nvolumes:", 1)[0]).replace("$$", "$")


@contextmanager
def proxy(configuration: str, changes: dict[str, str], folder: Path, port: int) -> Iterator[None]:
    """Start nginx on a port, with a configuration in which addresses and files are this trial's."""
    for before, after in changes.items():
        configuration, count = re.subn(re.escape(before), after, configuration)
        assert count, f"the configuration has no {before!r}"
    file = folder / "nginx.conf"
    file.write_text(SHELL.format(folder=folder, server=configuration), encoding="utf-8")
    process = subprocess.Popen([nginx_path() or "nginx", "-c", str(file), "-e", str(folder / "error.log")])
    try:
        wait_for_port(process, port)
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for_port(process: "subprocess.Popen[bytes]", port: int, seconds: float = 30.0) -> None:
    """Wait until somebody listens there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.05)
    raise RuntimeError("nginx doesn't answer")


def nginx_path() -> str | None:
    """Return where nginx is, if it is there; administrators have more in their path than others."""
    return shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


def run_file(topics: list[str]) -> str:
    """Return a run of some megabytes."""
    lines = LARGE // (len(topics) * 40)
    return "".join(
        f"{topic} Q0 {topic}-document-number-{at:06d} {at + 1} {lines - at} large\n"
        for topic in topics
        for at in range(lines)
    )


def send_large_file(page: Page, root: str, store: Store) -> None:
    """Set a campaign up from a file that is larger than other requests may be."""
    page.goto(setup_address(root, setup_key(link_keys(store), time.time())))
    run = run_file(["t1", "t2"]).encode()
    page.set_input_files("#send-any", FilePayload(name="large.run", mimeType="text/plain", buffer=run))
    page.click("form.drop button")
    page.wait_for_selector("#pools")
    for _ in range(6):  # each may come to another server
        page.reload()
        page.wait_for_selector("#pools")


def judge_some(page: Page, link: str, count: int) -> None:
    """Judge with the keys."""
    page.goto(link)
    last = ""
    for _ in range(count):
        wait_in(page, "last => ![undefined, '', last].includes(document.documentElement.dataset.open)", last)
        last = page.evaluate("() => document.documentElement.dataset.shown")
        page.keyboard.press("ArrowLeft")
    wait_in(page, "document.documentElement.dataset.waiting === '0'")


def guide() -> list[str]:
    """Do in a browser, by https, what people do; return what is wrong."""
    wrong: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target = str(folder / "campaign.db")
        store = stack.enter_context(open_store(target, create=True))
        campaign = set_up(store, "guide", "dedicated", topics=4, items=6)
        (door,) = doors_of(store, [campaign])
        outside = free_port()
        root = f"https://127.0.0.1:{outside}"
        command = (sys.executable, "-m", "duelpool", "account", "add", target, NAME)
        subprocess.run(
            [*command, "--role", "manager", "--password-stdin"], input=PASSWORD.encode(), check=True
        )
        server = stack.enter_context(serving(target, folder, workers=2, more=("--url", root)))
        certify(folder)
        live = "/etc/letsencrypt/live/judge.example.org"
        changes = {
            "listen 443": f"listen 127.0.0.1:{outside}",
            "127.0.0.1:8000": f"127.0.0.1:{server.port}",
            f"{live}/fullchain.pem": f"{folder}/certificate.pem",
            f"{live}/privkey.pem": f"{folder}/key.pem",
        }
        stack.enter_context(proxy(guide_configuration(), changes, folder, outside))
        browser = stack.enter_context(open_browser())
        context = browser.new_context(ignore_https_errors=True)
        context.set_default_timeout(PATIENCE)
        page, worker = context.new_page(), browser.new_context(ignore_https_errors=True).new_page()
        page.goto(f"{root}/login?next=/manage/{campaign.id}/leaderboard")
        page.fill("#name", NAME)
        page.fill("#password", PASSWORD)
        page.click("button.strong")
        wait_in(page, "document.documentElement.dataset.live === 'events'")
        wrong += [
            f"the cookie {each['name']} may travel in the clear"
            for each in context.cookies()
            if not each["secure"]
        ]
        judge_some(worker, f"{root}/j/{door[0]}?key={door[1]}", 5)
        wait_in(page, "Number(document.documentElement.dataset.refreshed) > 0")
        send_large_file(page, root, store)
        refused = page.request.get(f"{root}/metrics", ignore_https_errors=True).status
        wrong += [] if refused == 403 else [f"/metrics from outside is {refused}, not 403"]
        wrong += verdict(store, [campaign], Seen()) + server.trouble()
    return wrong


def certify(folder: Path) -> None:
    """Make a certificate for this machine."""
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )


def compose(people: int, seconds: float) -> list[str]:
    """Let many judge through two servers that die in turn; return what is wrong."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target = stack.enter_context(new_target("postgresql", folder))
        ports, outside = (free_port(), free_port()), free_port()
        root = f"http://127.0.0.1:{outside}"

        def start(at: int) -> Server:
            own = folder / f"host-{at}"
            own.mkdir(exist_ok=True)
            more = ("--url", root, "--uploads", str(own / "uploads"))
            return begin(target, own, workers=2, port=ports[at], more=more)

        servers = [start(0), start(1)]  # at once, on a database in which nothing is
        stack.callback(lambda: [each.stop() for each in servers])
        for each in servers:
            each.wait()
        changes = {
            "listen 80": f"listen 127.0.0.1:{outside}",
            "judge-1:8000": f"127.0.0.1:{ports[0]}",
            "judge-2:8000": f"127.0.0.1:{ports[1]}",
        }
        stack.enter_context(proxy(compose_configuration(), changes, folder, outside))
        store = stack.enter_context(open_store(target))
        with open_browser() as browser:
            page = browser.new_page()
            page.set_default_timeout(PATIENCE)
            send_large_file(page, root, store)
        campaigns = [set_up(store, judges, judges) for judges in ("crowd", "dedicated")]
        downs = 0

        async def fail_in_turn() -> None:
            nonlocal downs
            while True:
                at = downs % 2
                await asyncio.sleep(DOWN_SECONDS)
                servers[at].kill()
                downs += 1
                await asyncio.sleep(DOWN_SECONDS)
                servers[at] = start(at)
                await asyncio.to_thread(servers[at].wait)

        async def both() -> Seen:
            failing = asyncio.create_task(fail_in_turn())
            seen = await visit_all(outside, doors_of(store, campaigns), people, seconds, MEDIAN)
            if failing.done():
                failing.result()  # a server that doesn't come back
            failing.cancel()
            return seen

        seen = asyncio.run(both())
        print(
            f"compose: {len(seen.acknowledged)} judgments, {seen.rate:.1f} a second, a server killed {downs} times, "
            f"99 % within {seen.percentile(0.99):.0f} ms, {seen.failures} replies 5xx, {seen.dropped} dropped",
            flush=True,
        )
        wrong = verdict(store, campaigns, seen) + [line for each in servers for line in each.trouble()[:3]]
        if not downs or len(seen.acknowledged) < people * seconds / (10 * MEDIAN):
            wrong.append(
                f"only {len(seen.acknowledged)} judgments were acknowledged, and {downs} servers killed"
            )
        return wrong


def main() -> int:
    """Try both; return how many failed."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--people", type=int, default=50)
    reading.add_argument("--seconds", type=float, default=60.0)
    asked = reading.parse_args()
    if nginx_path() is None:
        print("nginx isn't here, so nothing was tried behind it.")
        return 0
    failed = 0
    trials: dict[str, Callable[[], list[str]]] = {
        "guide": guide,
        "compose": lambda: compose(asked.people, asked.seconds),
    }
    for name, trial in trials.items():
        problems = trial()
        failed += bool(problems)
        print(f"{name}:", "; ".join(problems[:5]) or "all well", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
