"""From raw batches to the parameters of the model, each with its interval and its quality."""

from popmodel.machine.calibration.document import calibrate
from popmodel.machine.calibration.statistics import CalibrationError

__all__ = ["CalibrationError", "calibrate"]
