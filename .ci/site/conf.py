"""The site: the pages of popmodel/docs, and the reference of the Python functions."""

from popmodel import __version__

project = "popmodel"
author = "the popmodel developers"
copyright = author
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]  # terminal screens are no code

html_theme = "furo"
html_title = f"popmodel {release}"

napoleon_google_docstring = False
autodoc_typehints = "none"  # the docstrings have types and units
