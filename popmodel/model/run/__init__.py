"""A program on a machine in a placement: what it takes, term by term."""
