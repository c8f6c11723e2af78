"""What is predicted: the application on the left, how large on the right; and on which machine."""

from __future__ import annotations

from popmodel.report.blocks import Section, notes
from popmodel.report.views import Document
from popmodel.simulator.program import unmodelled_calls
from popmodel.units import plural


def application(document: Document) -> str:
    """Name of the application, whether it came with popmodel, its parameters, what else was set."""
    one = document["application"]
    bundled = " (bundled)" if one["bundled"] else ""
    given = {**one["settings"], **one["imbalance"]}
    settings = " ".join(f"{name}={value:g}" for name, value in given.items())
    return f"{one['name']}{bundled}  {settings}".rstrip()


def omitted(document: Document) -> Section:
    """What of the program the signature does not contain, which comes before all else."""
    return notes(unmodelled_calls(document["application"].get("not_modelled", "")))


BOUND = {"close": "", "spread": ", threads spread", "none": ", threads not bound"}
"""What headings say of the binding."""


def calibrated(document: Document) -> tuple[tuple[str, str], ...]:
    """By what runs the signature was calibrated, as a fact with its name; nothing if it was not."""
    known = document["application"]["calibration"]
    if known is None:
        return ()
    text = f"by {plural(known['runs'], 'run')} on {known['machine']}"
    if not known["same_machine"]:
        text += "; on this machine only what they tell of the program holds"
    if known["changed"]:
        names = ", ".join(known["changed"])
        text += f"; changed by hand since, what they told of it is forgotten: {names}"
    return (("calibrated", text),)


def machine(document: Document) -> str:
    """Name of the machine, and how far its values were measured."""
    one = document["machine"]
    origin = "preset, not measured" if one["preset"] else one["origin"]
    noisy = f"; noisy: {', '.join(one['noisy'])}" if one["noisy"] else ""
    return f"{one['name']} ({origin}{noisy})"
