"""The performance model."""
