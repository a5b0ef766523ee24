"""Longstride: train, test and study agents whose interaction horizon scales. See docs/architecture.md for the plan of
the house."""

__version__ = "0.1.0"
