"""The performance model: from what an application does and what a machine can to its times.

``grammar`` is what signatures are written in: keys, formulas, lines. ``terms`` has one physical
term per file, ``run`` what messages, collectives and cores cost at a point. ``kinds`` has one kind
of item of a program per file, with all that is to be known of it. ``signature`` reads the
description of an application, ``check`` finds what is wrong in it, `signatures` loads it.
`performance` evaluates it: the work of a program is a `tree` of the works of its items.
``replayed`` carries the program out step by step. `study` evaluates runs with their uncertain
inputs; what is told of them is in `popmodel.prediction`.
"""
