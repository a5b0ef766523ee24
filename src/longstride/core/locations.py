"""Where members of families stand that no import brings by itself: the table that `wings` and the tests of a package
fill, apart from `core.component` so that filling it imports nothing."""

LOCATIONS: dict[str, dict[str, str]] = {}
"""By family and member, in snake case: the module to import."""
