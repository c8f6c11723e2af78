"""Runs of programs of known structure, written as Paraver traces: what found structure is held to.

Nothing here shares code with the package: a program is plain Python, a small discrete simulation
gives its times, and the lines of the trace are written here.

    from synthetic import programs, run

    done = run(programs.jacobi((4, 4), steps=50), persistent=0.1, transient=0.02, seed=1)
    trace = done.read(tmp_path)          # popmodel.traces.Trace
    done.iterations[3]                   # ns at which rank 3 began each iteration, and its last end
    done.bursts["sweep"][3]              # seconds that rank 3 computed in each execution

`synthetic.programs` has ready programs, `synthetic.program` what a program may do, `run` the
options of a run.
"""

from synthetic.data import Counters, Network, Run, spread
from synthetic.program import ANY, Program, Rank
from synthetic.simulation import run

__all__ = ["ANY", "Counters", "Network", "Program", "Rank", "Run", "run", "spread"]
