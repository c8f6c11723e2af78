"""Documents as one HTML file that needs no network: what it shows, section by section."""
