"""Runs whose laws nobody gave the model: what calibration and validation are judged against.

A truth is a program on a cluster, both drawn at random by a seed, and simulated here step by step
over all ranks. Nothing is shared with the package. What comes with it is what a person would have:
a signature with intervals, as an analyst would write it, a machine profile, as a benchmark would
have measured it, and runs. Neither knows the terms that the simulation has besides.

    from truth import truth

    one = truth("moderate", seed=3)
    one.signature, one.profile            # TOML text, JSON object
    one.terms                             # what the signature does not say
    runs = [one.run(*size) for size in one.training()]
    runs[0].runtime, runs[0].metrics      # seconds, by family and metric
    one.expected(512, 1).runtime          # without noise from run to run

Families, to be reported separately:

- ``shared``: the laws of the model, for tests of the generator itself;
- ``moderate``: a memory that saturates by another law, transient imbalance of another shape
  between neighbours only, and a collective in every step that the signature does not have;
- ``hard``: two to four of: a penalty of the node boundary, a penalty of teams on two sockets, a
  root whose work grows with P, traffic that falls as blocks come to fit a cache, a clock that falls
  with busy cores, and a serial part in every parallel region; memory and imbalance as in
  ``moderate``;
- ``irregular``: imbalance that grows with sqrt(P), work in tasks that nobody divides further, a
  phase of rank 0 that grows with P, traffic that falls as blocks come to fit a cache, and an
  adapter that the processes of a node slow down; the signature names none of them.
"""

from truth.machine import Machine
from truth.measured import TruthRun
from truth.program import Program
from truth.terms import FAMILIES, Terms
from truth.truths import Truth, truth

__all__ = ["FAMILIES", "Machine", "Program", "Terms", "Truth", "TruthRun", "truth"]
