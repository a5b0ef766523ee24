"""What models of half a million parameters learn with on a processor, whatever the tasks."""

FAST = {"dtype": "float32", "threads": "auto"}
"""Fields of a learner."""
