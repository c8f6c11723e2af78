"""Measuring a machine: from a request to samples, and from samples to the document of a profile.

`bench_plan` makes a plan of `jobs` for the programs in ``microbench/``, `suite` runs it launch by
launch or writes a job script, `run_directory` and `sample_files` keep and read what comes of it,
`collect` makes a profile of it by the numbers that `estimate` finds. `doctor_checks` tells whether
a machine can be measured.
"""
