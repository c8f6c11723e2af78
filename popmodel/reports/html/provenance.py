"""Where the numbers of a page come from."""

from __future__ import annotations

from popmodel.reports.html.contents import Contents, verb_of
from popmodel.reports.html.section import Section
from popmodel.reports.views import pasteable


def section(contents: Contents) -> Section:
    """Commands, versions, hosts, times and input files of all documents."""
    stamps = [(one, one["provenance"]) for one in contents.documents if "provenance" in one]
    made = [
        {"what": verb_of(one), **stamp, "command": pasteable(stamp["command"])}
        for one, stamp in stamps
    ]
    return Section("provenance", "Provenance", {"made": made})
