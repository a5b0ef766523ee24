"""What computes the passes of a small model on a CPU, as a setting. No torch."""

import warnings
from typing import Literal

from longstride.core.errors import ConfigError, LongstrideWarning

Kernels = Literal["auto", "torch", "native"]
"""`native` is C++ for a small Llama in float32 (`models.native`), which the system's compiler builds on first use; any
other model goes through `torch`. `auto` is `native` where there is a compiler; `run.toml` has what that came to, for
the last bits of a run depend on it."""


def settled(kernels: Kernels) -> Literal["torch", "native"]:
    """What this machine makes of it.

    Raises:
        ConfigError: `native` is asked for, and cannot be built.
    """
    if kernels == "torch":
        return kernels
    from longstride.models.native import library, trouble

    if library() is not None:
        return "native"
    found = f" ({why})" if (why := trouble()) else ""
    if kernels == "native":
        raise ConfigError(
            "kernels = 'native' needs a C++ compiler that runs (c++, g++, clang++, or what CXX names) and a folder for "
            f"what it builds (XDG_CACHE_HOME){found}; see to these, or use kernels = 'torch', which differs in the "
            "last bits"
        )
    if found:
        warnings.warn(
            f"the native kernels could not be built{found}: torch's are slower", LongstrideWarning, stacklevel=2
        )
    return "torch"
