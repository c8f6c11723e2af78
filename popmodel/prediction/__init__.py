"""What is told of a predicted run: metrics with intervals, causes, remedies, scaling, validity."""
