"""Measuring a machine: what to measure, the samples, and the profile that follows from them."""
