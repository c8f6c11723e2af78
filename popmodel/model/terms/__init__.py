"""The physical terms of the model, one file each; plain functions of numbers, arrays or formulas."""
