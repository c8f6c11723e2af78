"""From traces to a signature: what repeats, what it costs, and by which laws it grows."""

from popmodel.signatures.align_runs import Run
from popmodel.signatures.from_runs import LearntSignature, signature_from

__all__ = ["LearntSignature", "Run", "signature_from"]
