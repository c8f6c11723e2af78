"""No picture."""

picture = None
