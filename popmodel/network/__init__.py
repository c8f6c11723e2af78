"""Parameters of a network and what a message or a collective costs on it."""
