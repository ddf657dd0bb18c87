"""How Alembic reaches the database: by the connection that the store hands it."""

from alembic import context

from duelpool.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False
)
context.run_migrations()
