"""How blocks look: one module for each format."""
