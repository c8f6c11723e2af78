"""Efficiencies: from times and counters of a run to metrics that explain one another.

``observables``  what is measured, and the scalars that formulas use
``families/``    the metrics as data: formula, parts, meaning, advice, source
``hierarchy``    reads and checks those files; ``family`` is what one says
``evaluation``   values of the metrics of a run
``scaling``      runs compared with a reference run
``explain``      a metric in words
"""
