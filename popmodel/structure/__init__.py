"""How a run is built: its loops, the phases in them, and what its messages mean.

In goes a trace or the program in it. `iterations` finds the structure (`structure`): a nest of
loops around places, which place and execution each event is, and iterations with their confidence.
`program_events` makes calls and regions comparable; `repetition` finds what repeats exactly in a
sequence, `common_nest` makes one nest of all sequences, `step_kinds` makes steps of its items
(`nest_items`), and `time_steps` tells calls by site where nothing repeats exactly.

`phases` tells what is computed where: `bursts` and regions, and how their times vary
(`phase_variation`).

`patterns` reads messages as grids, halos, pipelines: `message_groups` are places that belong
together, `pattern_kinds` what their messages may be. `message_rows` lists calls as signatures write
them, with `rank_formulas`; `traffic` sums up messages and calls.

`descriptions` gives all of it as plain data; `focus` finds the iterations that are asked for.
"""
