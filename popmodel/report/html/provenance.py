"""Where the numbers of a page come from."""

from __future__ import annotations

from popmodel.report.html.contents import Contents, verb_of
from popmodel.report.html.section import Section


def section(contents: Contents) -> Section:
    """Commands, versions, hosts, times and input files of all documents."""
    made = [
        {"what": verb_of(one), **one["provenance"]}
        for one in contents.documents
        if "provenance" in one
    ]
    return Section("provenance", "Provenance", {"made": made})
