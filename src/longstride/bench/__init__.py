"""Benchmarks: Longstride and its peers, measured in turn on the same work. Each is a module with a `PAGE`."""

NAMES = ("browser", "generation", "rollouts", "step", "store", "turns")
