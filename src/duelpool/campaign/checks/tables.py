"""The tables of a store: every column, key, constraint and trigger is there, and no row refers to a missing one.

The constraints keep caps, "one answer per person" and the log; a store that has lost one would go on without it.
"""

from collections.abc import Iterator

from sqlalchemy import (
    CheckConstraint,
    Connection,
    ForeignKeyConstraint,
    Inspector,
    Table,
    and_,
    func,
    inspect,
    select,
    text,
)

from duelpool.store.schema import metadata

_TRIGGERS = {
    "sqlite": ("deed_no_delete", "deed_no_update"),
    "postgresql": ("deed_only_grows",),
}  # the activity log only grows
_FIND_TRIGGERS = {
    "sqlite": "select name from sqlite_schema where type = 'trigger'",
    "postgresql": "select tgname from pg_trigger where not tgisinternal and tgenabled <> 'D'",
}
_NOT_VALID = (
    "select conrelid::regclass::text, conname from pg_constraint where not convalidated "
    "and connamespace = current_schema()::regnamespace order by 1, 2"
)
_BROKEN_INDEXES = (
    "select i.indrelid::regclass::text, c.relname from pg_index i join pg_class c on c.oid = i.indexrelid "
    "where not i.indisvalid and c.relnamespace = current_schema()::regnamespace order by 1, 2"
)


def missing_parts(connection: Connection) -> Iterator[str]:
    """Yield what the tables lack of the newest schema."""
    inspector = inspect(connection)
    present = set(inspector.get_table_names())
    for name, table in sorted(metadata.tables.items()):
        if name in present:
            yield from _missing_of(inspector, table)
        else:
            yield f"The table '{name}' is missing."
    dialect = connection.dialect.name
    triggers = set(connection.execute(text(_FIND_TRIGGERS[dialect])).scalars())
    for trigger in _TRIGGERS[dialect]:
        if trigger not in triggers:
            yield f"The trigger '{trigger}' of 'deed' is missing: the activity log could be changed."
    if dialect == "postgresql":
        for table_name, constraint in connection.execute(text(_NOT_VALID)):
            yield f"The constraint '{constraint}' of '{table_name}' isn't validated: rows may contradict it."
        for table_name, index in connection.execute(text(_BROKEN_INDEXES)):
            yield f"The index '{index}' of '{table_name}' isn't valid: its building has failed."


def _missing_of(inspector: Inspector, table: Table) -> Iterator[str]:
    name = table.name
    columns = {column["name"] for column in inspector.get_columns(name)}
    for column in table.columns:
        if column.name not in columns:
            yield f"The table '{name}' has no column '{column.name}'."
    if set(inspector.get_pk_constraint(name)["constrained_columns"]) != {
        column.name for column in table.primary_key
    }:
        yield f"The primary key of '{name}' is missing."
    indexes = {index["name"]: bool(index["unique"]) for index in inspector.get_indexes(name)}
    for index in sorted(table.indexes, key=lambda each: str(each.name)):
        if indexes.get(str(index.name)) != bool(index.unique):
            rule = ", a rule that the store must keep" if index.unique else ""
            yield f"The index '{index.name}' of '{name}' is missing{rule}."
    keys = {
        (tuple(key["constrained_columns"]), key["referred_table"]) for key in inspector.get_foreign_keys(name)
    }
    checks = {check["name"] for check in inspector.get_check_constraints(name)}
    unique = {tuple(each["column_names"]) for each in inspector.get_unique_constraints(name)}
    for constraint in sorted(table.constraints, key=lambda each: str(each.name)):
        if isinstance(constraint, ForeignKeyConstraint):
            key = (tuple(constraint.column_keys), constraint.referred_table.name)
            if key not in keys:
                yield f"The foreign key of '{name}' to '{key[1]}' ({', '.join(key[0])}) is missing."
        elif isinstance(constraint, CheckConstraint) and constraint.name not in checks:
            yield f"The constraint '{constraint.name}' of '{name}' is missing."
    for column in table.columns:
        if column.unique and (column.name,) not in unique:
            yield f"The column '{column.name}' of '{name}' isn't unique any more."


def dangling_rows(connection: Connection) -> Iterator[str]:
    """Yield which rows refer to rows that aren't there."""
    for name, table in sorted(metadata.tables.items()):
        for key in sorted(table.foreign_key_constraints, key=lambda each: tuple(each.column_keys)):
            parent = key.referred_table.alias("parent")
            columns = [element.parent for element in key.elements]
            theirs = [parent.c[element.column.name] for element in key.elements]
            filled = [column.is_not(None) for column in columns if column.nullable]
            joined = table.outerjoin(
                parent, and_(*(own == other for own, other in zip(columns, theirs, strict=True)))
            )
            count, *one = connection.execute(
                select(func.count(), *(func.min(column) for column in columns))
                .select_from(joined)
                .where(theirs[-1].is_(None), *filled)
            ).one()
            if count:
                shown = ", ".join(
                    f"{column.name} '{value}'" for column, value in zip(columns, one, strict=True)
                )
                rows = "row refers" if count == 1 else "rows refer"
                yield f"{count:,} {rows} from '{name}' to a missing row of '{key.referred_table.name}' ({shown})."
