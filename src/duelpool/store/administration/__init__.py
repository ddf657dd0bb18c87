"""Steps on whole campaigns of a store."""
