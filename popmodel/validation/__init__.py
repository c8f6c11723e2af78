"""Predictions beside measured runs: comparing them, and what it comes to.

`predictions` is what runs are compared with, `comparison` finds the prediction of each run, where
it stands beside the runs of a fit, and which runs say nothing; `prediction_errors` has errors,
terms, plain extrapolations and whether the right split would have been chosen; `verdict` says it;
`validated_runs` has all of it, and its document.
"""
