"""What to work on: the losses of runs in order of what they cost, why, and what to do."""

from popmodel.efficiency.advice.advise import (
    GOOD,
    POP,
    Advice,
    Advised,
    Fall,
    advice_data,
    advise,
)

__all__ = ["GOOD", "POP", "Advice", "Advised", "Fall", "advice_data", "advise"]
