"""Predictions beside measured runs: reading the measurements, comparing, and what it comes to."""
