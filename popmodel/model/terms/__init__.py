"""The physical terms of the model, one file each: functions of numbers, arrays, traced numbers."""
