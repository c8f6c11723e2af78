"""What would happen on another network."""
