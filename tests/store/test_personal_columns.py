"""Every column of the store that can name a person is on the privacy page, with when it is written and when it goes."""

import re
from pathlib import Path

from sqlalchemy import String

from duelpool.store import schema

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "privacy.md"
ABOUT_NOBODY = {
    "campaign": "id name state",
    "topic": "campaign id text description conversation tags snippets reference strategy state",
    "item": "campaign topic id twin_of state",
    "passage": "campaign id text title url format sources",
    "run": "campaign name",
    "answer": "campaign topic system item",
    "campaign_event": "campaign event",
    "test_pair": "campaign id topic better worse",
    "assessor": "campaign kind state",
    "identity": "campaign panel",
    "topic_person": "campaign topic kind",
    "step": "campaign name outcome",
    "secret": "name value",
    "intake": "campaign digest",
    "intake_part": "campaign digest topic",
    "assignment": "id campaign state",
    "question": "id campaign topic criterion stage kind a b left_item right_item assignment test_pair phase proposal "
    "strategy source state",
    "log": "campaign topic event question left_item right_item outcome kind criterion stage assignment test_pair phase "
    "proposal strategy survivors",
    "feedback": "campaign assignment topic",
    "ledger": "campaign assignment entry",
    "account": "state",
    "account_role": "campaign role",
    "account_link": "issuer",
    "session": "id",
    "token": "id digest campaign scopes",
    "deed": "campaign deed",
    "llm_judge": "campaign assessor model address prompt prompt_hash prompt_text parameters secret",
    "llm_reply": "campaign assessor topic criterion left_item right_item outcome request",
    "llm_call": "campaign assessor topic left_item right_item list_items session state result",
    "submission": "id campaign panel study status said outcome",
    "arrival": "campaign panel verdict reason submission",
    "payment": "campaign panel submission kind currency state run batch",
    "delivery": "campaign panel event signature",
    "webhook": "id campaign url host secret events body state",
    "webhook_event": "id campaign kind facts",
    "webhook_delivery": "event webhook state said",
    "milestone": "campaign topic stage",
    "summary": "campaign topic form",
}


def text_columns() -> set[str]:
    """Return all columns that hold text; a person can't be named by anything else."""
    return {
        f"{table.name}.{column.name}"
        for table in schema.metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, String)
    }


def listed_columns() -> set[str]:
    """Return the columns that the page's table lists."""
    page = PAGE.read_text()
    table = page[page.index("### Every column that can name a person") :].split("\n\n")[1]
    found = set()
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert all(cells), row
        named = re.findall(r"`(\w+)\.(\w+)`", cells[0])
        assert named, row
        found |= {f"{table}.{column}" for table, column in named}
        if "and as" in cells[0]:
            shared, tables = cells[0].split("and as")[1].split(" in ")
            column = shared.strip().strip("`")
            found |= {f"{each}.{column}" for each in re.findall(r"`(\w+)`", tables)}
    return found


def test_every_text_column_is_on_the_privacy_page_or_about_nobody() -> None:
    nobody = {f"{table}.{column}" for table, columns in ABOUT_NOBODY.items() for column in columns.split()}
    listed = listed_columns()
    assert listed & nobody == set()
    assert listed | nobody == text_columns()
