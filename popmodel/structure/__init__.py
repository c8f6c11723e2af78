"""How a run is built: its loops, the places in them, and its parts.

In goes a trace or the program in it, out come a nest of loops around places, which place and
execution each event is, and iterations with their confidence (`find`). `events` makes calls and
regions comparable; `repetition`, `merge`, `flows` and `common` find what repeats exactly and lay
sequences beside one another, `cut_iterations` puts what a window cuts into its loop; `steps` and
`items` make iterations steps; `time_steps` finds steps and tells calls by site where nothing
repeats exactly; `iterations` times them.
"""

from popmodel.structure.events import ProgramEvents
from popmodel.structure.find import find
from popmodel.structure.nest import FoundLoop, Leaf, LoopPlace
from popmodel.structure.structure import Structure, StructureFocus, StructurePart

__all__ = [
    "FoundLoop",
    "Leaf",
    "LoopPlace",
    "ProgramEvents",
    "Structure",
    "StructureFocus",
    "StructurePart",
    "find",
]
