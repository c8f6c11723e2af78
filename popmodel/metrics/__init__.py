"""Efficiencies."""
