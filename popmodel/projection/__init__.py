"""Measured efficiencies carried to other numbers of processes or threads, without a signature."""
