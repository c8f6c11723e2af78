"""Fixtures of the tests of predictions: those of the model."""

from model.conftest import cannon, preset

__all__ = ["cannon", "preset"]
