"""The performance model: from what an application does and what a machine can to predictions.

``signature`` reads and checks the description of an application, ``terms`` has one physical term
per file, ``run`` combines them for a placement, ``replayed`` carries the program out step by step,
``sweep`` compares splits, ``formula`` writes predictions down as equations. `predict` puts it
together.
"""
