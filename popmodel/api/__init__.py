"""The commands as functions, which ``import popmodel`` offers and the command line calls.

One module per command. It takes traces, names and plain values, lets the rooms below do the work,
and returns a result that holds the command's document (what ``--format json`` prints). The command
line only reads options and writes the result.
"""
