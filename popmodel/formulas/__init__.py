"""Predictions as formulas: derived, written down, and checked."""
