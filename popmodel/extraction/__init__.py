"""From traces to a signature: what repeats, what it costs, and by which laws it grows."""
