"""What all rooms use: errors, units, files, documents, data classes; it imports none of them."""
