"""What signatures are written in: keys with units and domains, formulas, lines of the text."""
