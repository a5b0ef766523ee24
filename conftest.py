"""Settings of all tests: one thread, property tests that draw the same examples each time, and no waiting for disks."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

from hypothesis import HealthCheck, settings  # noqa: E402 (threads are counted when torch is imported)

settings.register_profile(
    "repeatable", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

os.fsync = lambda fd: None  # a power cut is simulated where it is tested, and a run of tests waits for thousands
