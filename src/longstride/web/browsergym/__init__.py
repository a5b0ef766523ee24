"""BrowserGym (de Chezelles et al., 2024, arXiv 2412.05467) both ways; needs the extra `browsergym`.

`env` makes any BrowserGym environment one of ours, `tasks` registers our sites with BrowserGym, and `grammar`
translates actions both ways and needs nothing installed. BrowserGym asks for one version of Playwright (0.14 for 1.44),
so it wants a Python environment of its own.
"""

from longstride.web.browsergym.env import BrowserGym, BrowserGymEnv, register_tasks
from longstride.web.browsergym.grammar import from_browsergym, to_browsergym

__all__ = ["BrowserGym", "BrowserGymEnv", "from_browsergym", "register_tasks", "to_browsergym"]
