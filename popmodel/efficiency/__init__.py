"""Efficiencies: from times and counters of a run to metrics that explain one another.

``measure``, ``regions``  a traced run to ``observables``, and scalars that formulas use
``families/``  the metrics as data, read by ``hierarchy``; ``family`` is what one says
``evaluation``, ``scaling``  values of the metrics, of one run and against a reference run
``verdict``, ``loss_causes``, ``evidence``  which losses to work on, why, and what to do
``explain``  a metric in words
"""
