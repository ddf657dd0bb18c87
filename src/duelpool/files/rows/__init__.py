"""The rows of a file as places in its bytes: hashed, compared, and named by keys."""
