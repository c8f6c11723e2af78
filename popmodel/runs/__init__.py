"""Measured runs, from traces and from tables that people write: what models are compared with."""
