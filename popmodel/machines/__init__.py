"""What is known about machines: from what was measured or published to quantities with intervals.

`profile` reads a profile (its keys: `profile_schema`) and answers what the model asks: a
`quantity`, or what is assumed of one. `register` says of every parameter once what it is, which
part of the measurement gives it and what needs it. `profile_findings` doubts a profile,
`profile_comparison` lays two side by side and makes one the network of a replay. `bench` measures a
machine, `host` is this computer.
"""
