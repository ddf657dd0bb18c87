"""Language models as judges: the prompt, the strict reply, the guarded address, the price of a call.

Nothing here keeps state: `duelpool.campaign.runners.llm_judge` asks, stores and counts.
"""

from duelpool.judges.llm.endpoint import Endpoint, parse_address
from duelpool.judges.llm.prices import Prices, money_of, read_money
from duelpool.judges.llm.prompts import PROMPTS, Prompt, read_prompt
from duelpool.judges.llm.replies import Verdict, parse_verdict
from duelpool.net.addresses import Address

__all__ = [
    "PROMPTS",
    "Address",
    "Endpoint",
    "Prices",
    "Prompt",
    "Verdict",
    "money_of",
    "parse_address",
    "parse_verdict",
    "read_money",
    "read_prompt",
]
