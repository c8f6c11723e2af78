"""Predictions: a signature and a machine profile go in, runs and splits with intervals come out.

`prediction` says what one run takes, `causes` why, and what would help; `learnt_study` anchors it
at the runs that a signature was learnt from, `derivation` writes it down as formulas.
`split_choice` judges all splits of some cores and recommends one, `split_sweep` does so for several
numbers of cores.
"""
