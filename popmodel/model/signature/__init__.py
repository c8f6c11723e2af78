"""What an application does: read, checked and explained."""
