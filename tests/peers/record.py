"""Record what the peers answer on the committed inputs: those that are named, or all that are installed.

    make record
    python tests/peers/record.py pytrec_eval choix

Tests hold Duelpool to these files everywhere, and the peers themselves where they are installed. trec_eval is the
one on the PATH, or is built from its source in the folder `peers` beside the data (DUELPOOL_DATA).
"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from peers.installed import PEERS, installed, version
from peers.questions import DECIMALS
from peers.recording import Recording, hashes, written
from peers.theirs import THEIRS


def record(peer: str, folder: Path) -> Recording:
    """Ask a peer everything."""
    return Recording(
        peer=peer,
        version=version(peer, folder),
        command=f"python tests/peers/record.py {peer}",
        python=platform.python_version(),
        machine=platform.machine(),
        decimals=DECIMALS[peer],
        inputs=hashes(peer),
        answers=written(THEIRS[peer](folder), DECIMALS[peer]),
    )


def main() -> None:
    """Write a file for each peer."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "peer", nargs="*", help=f"one of {', '.join(PEERS)}; all that are installed without one"
    )
    named = options.parse_args().peer
    if strange := [peer for peer in named if peer not in PEERS]:
        options.error(f"there is no peer called {strange[0]}; known: {', '.join(PEERS)}")
    for peer in named or PEERS:
        if not installed(peer):
            print(f"{peer}: not installed, its recording stays as it is")
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = record(peer, Path(folder))
        print(f"{peer} {made.version}: {len(made.answers)} answers in {made.write()}")


if __name__ == "__main__":
    main()
