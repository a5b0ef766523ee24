"""Where members of families stand that no import brings by itself. Without pydantic: a command line is read with it."""

LOCATIONS: dict[str, dict[str, str]] = {}
"""By family and member, in snake case: the module to import. `longstride.wings` fills it."""
