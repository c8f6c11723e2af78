"""A signature carried out step by step and replayed."""
