"""From traces to a signature: what repeats, what it costs, and by which laws it grows."""

from popmodel.extraction.extracted import Extracted, signature_from

__all__ = ["Extracted", "signature_from"]
