"""How a run is built: its loops, the places in them, and its parts."""

from popmodel.structure.events import Events
from popmodel.structure.find import find
from popmodel.structure.nest import Leaf, Loop, Place
from popmodel.structure.structure import Focus, Part, Structure

__all__ = ["Events", "Focus", "Leaf", "Loop", "Part", "Place", "Structure", "find"]
