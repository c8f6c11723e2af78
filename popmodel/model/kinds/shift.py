"""A message to the process some steps along a grid dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from popmodel.model.grammar.keys import NOT_NEGATIVE, GrammarKey
from popmodel.model.grammar.reading import GrammarReading
from popmodel.model.grammar.toml_lines import Path
from popmodel.model.kinds import sending, words
from popmodel.model.kinds.item import GRID, Amount
from popmodel.model.run.work import RunWork
from popmodel.model.terms import message
from popmodel.network import point_to_point as p2p
from popmodel.values import dataclass

if TYPE_CHECKING:
    from popmodel.model.run.operations import OperationsBuilder
    from popmodel.model.run.point import ModelPoint


def read_dimension(reading: GrammarReading, table: Mapping[str, Any], where: Path) -> int:
    """Read a grid dimension."""
    dim = table["dim"]
    if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < reading.dimensions:
        hint = sending.hint_of_dimensions(reading.dimensions)
        raise reading.error(where, f"dim must be a grid dimension, not {dim!r}", hint)
    return dim


@dataclass(frozen=True)
class Shift(sending.Sending):
    """Every process exchanges ``bytes`` with the one ``by`` steps along a grid dimension.

    Its ``comm_threads`` threads send a part of the message each.
    """

    kind: ClassVar[str] = "shift"
    about: ClassVar[str] = "a message to the process some steps along a grid dimension"
    own: ClassVar[tuple[GrammarKey, ...]] = (
        GrammarKey("dim", "", None, "grid dimension, counted from 0", read=read_dimension),
        GrammarKey("by", "1", None, "steps along it, whole", is_whole=True),
        GrammarKey("bytes", "B", None, "message size", NOT_NEGATIVE),
        sending.THREADS,
    )
    needs: ClassVar[str] = GRID

    dim: int
    by: Amount
    bytes: Amount

    def targets(self, point: ModelPoint) -> NDArray[np.int64]:
        """Return the rank that each rank sends to, shape (P,); one outside 0..P-1 is none."""
        wraps = point.periodic[self.dim]
        return message.grid_neighbours(point.extent, self.dim, self.by, periodic=wraps)

    def work(self, point: ModelPoint) -> RunWork:
        """Return the work of one exchange."""
        one, _ = sending.exchanged(point, self.targets(point), self.bytes, self.comm_threads)
        return RunWork(transfer=p2p.exchange(one, one), steps=1.0)

    def operations(self, point: ModelPoint, build: OperationsBuilder) -> None:
        """Let all send and receive at once."""
        targets, part = self.targets(point), self.bytes / self.comm_threads
        cost = build.pattern(targets, part, self.comm_threads)
        build.send_all(targets, part, cost, self.comm_threads)

    @staticmethod
    def sentence(entry: words.Entry) -> str:
        """Say what is sent where."""
        noun = "step" if entry["by"]["formula"] in ("1", "-1") else "steps"
        return (
            f"send {words.quantity(entry['bytes'])} to the process {words.symbol(entry['by'])} "
            f"{noun} along grid dimension {entry['dim']}, and receive as much"
            f"{sending.threads_sentence(entry)}"
        )
