"""A study: from the command of a program to the files behind a recommended split.

`plan` checks what is asked for and plans small runs, `executor` makes them here or in a batch job,
`learning` finds the signature in them and says what makes the answer doubtful, `machine` has the
load, the profile and the target. `steps` has the order; all is noted in the `manifest`, by which a
study goes on. `study_documents` has what came of it: the splits, and the check of the prediction.
"""
