"""The verbs as functions: what ``import popmodel`` offers and what the command line calls.

One module for each verb. It takes traces, names and plain values, lets the rooms below do the work,
and returns a result that holds the document of the verb (what ``--format json`` prints). The
command line only reads options and writes the result.
"""
