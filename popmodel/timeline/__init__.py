"""A run over time, for drawings that people zoom into: what every thread does, in equal steps."""
