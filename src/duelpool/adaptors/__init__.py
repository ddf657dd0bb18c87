"""Adaptors to other tools of the field, each in a module of its own that imports the tool when it is used."""
