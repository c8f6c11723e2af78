"""x."""

EXAMPLES = ("popmodel predict",)


def command() -> None:
    """Do predict."""
