"""Measured runs of one program as one table, from whatever tells of them.

In come traces (`measurement`, `sites` for what a run does at each place in the code, and
`same_program` for whether two runs are of one program) and files: tables in text (`text_tables`),
JSON (`run_files`, which says who reads and writes what), Extra-P (`extrap_files`), batch logs
(`sacct_files`), and for efficiencies alone reports of TALP (`talp_files`) and profiles of Score-P
(`cube_profiles`). `column_names` finds sizes and times by the usual names, `table` knows what
columns and cells mean, `measurement` what is wrong with all runs together and how much repeats of a
run differ in their losses.
"""
