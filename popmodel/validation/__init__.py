"""Predictions beside measured runs: comparing them, and what it comes to.

`subject` is what is predicted, and compares runs with it (`predictions`, `comparison`); `training`
says which runs a fit has seen, `oversubscribed` which say nothing. The result: `errors`, `terms`,
`decision` (would the right split have been chosen), `baselines`, and the `verdict` in sentences.
"""
