"""From raw batches to the parameters of the model, each with its interval and its quality.

In: launches with their samples (`sample_files`). Out: the document of a profile
(`profile_document.calibrate`). `measured_results` finds results and sets aside disturbed ones,
`launch_intervals` makes numbers with intervals of them, and the ``_estimates`` know what each job
means.
"""
