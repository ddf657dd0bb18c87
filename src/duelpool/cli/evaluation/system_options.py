"""The options of `duelpool evaluate --systems`; what makes the leaderboard is imported when it is asked for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from duelpool.cli.options import is_store
from duelpool.errors import UnknownName
from duelpool.records import TIE_MODELS

if TYPE_CHECKING:
    from duelpool.evaluation.systems import BoardOptions, Over


def _systems(help_text: str, *names: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel="Systems (with --systems)")


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """Options of the leaderboard of systems."""

    systems: Annotated[
        bool,
        _systems(
            "Rank systems by votes between their answers: a campaign's, or a file of votes.", "--systems"
        ),
    ] = False
    tie_model: Annotated[
        str, _systems(f"How ties count: {', '.join(TIE_MODELS)}; with --report powered halves, losses.")
    ] = "halves"
    over: Annotated[
        str,
        _systems(
            "What intervals speak of: questions like these (questions), or more votes on these (votes)."
        ),
    ] = "questions"
    prior: Annotated[
        float | None,
        _systems(
            "Drawn games that each system is given. Default: one where some won or lost all, else none."
        ),
    ] = None
    model_votes: Annotated[
        str | None,
        _systems(
            "A file of models' votes: a leaderboard beside people's, or with --report powered its help."
        ),
    ] = None

    def board_options(self, level: float, seed: int) -> "BoardOptions":
        """Return the options, checked."""
        if self.tie_model not in TIE_MODELS:
            raise UnknownName("way to count ties", self.tie_model, TIE_MODELS)
        from duelpool.evaluation.systems import BoardOptions

        return BoardOptions(self.tie_model, cast("Over", self.over), self.prior, level, seed)


def ranks_systems(source: str, campaign: str | None) -> bool:
    """Say whether a source is a campaign in which systems compete; of such a one nothing else is scored."""
    if not is_store(source):
        return False
    from duelpool.cli.opening import opened

    with opened(source, campaign) as one:
        return one.live.goal.of_systems
