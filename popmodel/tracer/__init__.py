"""The tracer: from an unmodified program to a trace.

A library that is loaded into the program (``microbench/tracer/``) writes raw records, one file per
thread. What is here makes a Paraver trace of them.
"""
