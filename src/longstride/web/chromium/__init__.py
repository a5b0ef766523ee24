"""Chromium as an environment; needs the extra `browser` and a Chromium of the system."""
