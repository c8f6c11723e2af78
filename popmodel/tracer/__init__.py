"""The tracer: from an unmodified program to a trace.

A library that is loaded into the program (``microbench/tracer/``) writes raw records, one file per
thread. `library` builds it, `commands` hands it to the program behind a launcher, `run` runs that
or writes a job script, `raw_directory` holds the files. `conversion` makes a Paraver trace of them:
`raw` and `meta` read, `clocks` and `thread_rows` align, `raw_records`, `thread_events` and
`message_ends` convert thread by thread by way of a file (`temporary`), `identities` and
`symbol_table` name what is in it.
"""
