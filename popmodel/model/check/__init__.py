"""What is wrong with a signature, what is doubtful in it, and what it says."""
