"""Which question goes to whom: proposals, dispatch, crossed designs, repeats, the grading stage."""
