"""The performance model: from what an application does and what a machine can to its times.

What a halo costs stands in ``kinds/halo.py``: its keys, work, operations and sentence; likewise
every kind of item. Kinds take costs of messages and collectives, the machine and the placement
from ``run``, and formulas from ``terms``. ``signature`` has the description of an application and
what it is written in; `signatures` reads it, `signature_check` finds what is wrong in it. A `tree`
adds up the works of the items of a program. `script` has its communication, `unroll` carries it out
step by step, `replayed_run` replays that. `predictor` evaluates runs with their uncertain inputs
(`uncertainty`) and the errors of its laws (`model_error`).
"""
