"""Reading measured runs."""
