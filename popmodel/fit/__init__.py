"""Laws of P, T and parameters from few points, each with its interval; constants of models by runs.

In go measured values (`samples`); out come laws with 90 % intervals and what would tell more.
`candidates` has the forms, `mixture` averages over them by their evidence, `law` tells the average
as a formula; `common_law` is one law for many parts, `counts` are exact, `physical_laws` have a
form that is known, `baselines` are of whole runs. `efficiency_factors`, `efficiency_laws` and
`projection` carry efficiencies. `problem` sets runs beside the model, `scores` finds the most
likely constants and the outliers, `cross_validation` what is left out says and what to measure
next, `calibrate` makes a signature of it, from `initial_values` where constants are unknown.
"""
