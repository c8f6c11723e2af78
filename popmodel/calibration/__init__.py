"""Measured runs correct what a prediction is unsure of: the fit, its doubts, the next run."""
