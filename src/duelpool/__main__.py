"""`python -m duelpool` is the command `duelpool`."""

from duelpool.cli import main

if __name__ == "__main__":
    main()
