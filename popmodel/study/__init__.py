"""Studies: small runs of a program, its signature and the machine's profile made of them."""
