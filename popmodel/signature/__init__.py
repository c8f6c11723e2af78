"""From traces to a signature: what repeats, what it costs, and by which laws it grows."""

from popmodel.signature.align_runs import Run
from popmodel.signature.from_runs import Extracted, signature_from

__all__ = ["Extracted", "Run", "signature_from"]
