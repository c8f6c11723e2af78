"""The performance model: from what an application does and what a machine can to its times.

``grammar`` is what signatures are written in: keys, formulas, lines. ``terms`` has the physics,
``run`` what messages, collectives and cores cost. ``kinds`` has the kinds of items of a program,
with all that is to be known of each. ``signature`` has the description of an application;
`signatures` reads it, `check` finds what is wrong in it. A `tree` adds up the works of the items of
a program. `script` has their communication, `unroll` carries it out step by step, and `simulate`
replays that. `study` evaluates runs with their uncertain inputs; what is told of them is in
`popmodel.prediction`.
"""
