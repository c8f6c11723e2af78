"""From raw batches to the parameters of the model, each with its interval and its quality."""

from popmodel.bench.calibration.document import calibrate
from popmodel.bench.calibration.intervals import CalibrationError

__all__ = ["CalibrationError", "calibrate"]
