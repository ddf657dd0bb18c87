"""`duelpool texts`: texts and questions that a campaign lacks are added, and topics that waited for them are judged."""

from typing import Annotated

import typer

from duelpool.cli.opening import audit_entry, opened, tell_held, working
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, tell_notices
from duelpool.errors import BadParameter
from duelpool.files import read_passages, read_topics
from duelpool.setup.completing import complete


def texts(
    store: StoreArgument,
    passages: Annotated[
        str | None, typer.Argument(metavar="[PASSAGES]", help="Texts of items, as for pool --texts.")
    ] = None,
    topics: Annotated[str | None, typer.Option(help="Questions of topics, as for pool --topics.")] = None,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add texts to items that have none, and questions to topics that have none.

    Topics that were held back for them are judged from then on. Texts and questions that are there stay as they are.

    Examples:

      duelpool texts campaign.db passages.jsonl

      duelpool texts campaign.db --topics topics.tsv
    """
    if passages is None and topics is None:
        raise BadParameter("There is nothing to add.", remedy="Give a file of texts, --topics FILE, or both.")
    with opened(store, campaign_name, writable=True) as campaign, working("Reading texts"):
        shown = None if passages is None else read_passages(passages)
        asked = None if topics is None else read_topics(topics)
        for file, read in ((passages, shown), (topics, asked)):
            if file is not None and read is not None:
                tell_notices(file, read.notices)
        entry = audit_entry(campaign, "texts", texts=passages, topics=topics)
        done = complete(campaign, shown or (), asked or (), also=entry)
    if as_json:
        print_json(
            {
                "texts": done.texts,
                "questions": done.questions,
                "released": done.released,
                "held_back": list(done.held.topics),
            }
        )
        return
    typer.echo(
        f"Added {done.texts:,} texts and {done.questions:,} questions; {done.released:,} topics were released."
    )
    tell_held(done.held, store)
