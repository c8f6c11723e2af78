"""From raw batches to the parameters of the model, each with its interval and its quality."""

from popmodel.machine.calibration.document import CalibrationError, calibrate

__all__ = ["CalibrationError", "calibrate"]
