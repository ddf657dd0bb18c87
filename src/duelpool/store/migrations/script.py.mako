"""${message}."""

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Bring a store of the schema before to this one."""
    ${upgrades if upgrades else "pass"}
