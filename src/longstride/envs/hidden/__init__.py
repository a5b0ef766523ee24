"""Worlds whose rule is hidden: what an agent finds out in one episode of a trial, it can use in the next ones.

| world | hidden | as in |
|---|---|---|
| `Bandits` | the chance of each arm | DPT (arXiv 2306.14892): 5 arms |
| `GaussianBandits` | the mean of each arm | DPT: noise of deviation 0.3 |
| `GaussianLinearBandits` | the direction in which arms are good, and how much | DPT: 10 arms, noise of deviation 0.3 |
| `LinearBandits` | the direction in which arms are good | arXiv 2310.08566: 10 arms |
| `DarkRooms` | the goal; key and door; or what each action does | AD (arXiv 2210.14215), DPT |
| `Corridors` | which door of each room leads on | our own, in words |
| `SeveralWorlds` | whatever each of them hides | T2MIR (arXiv 2506.05426) has one world at a time |

Training and evaluation share no rule. Learners that know nothing of it play here too (`strategies.learners`). No torch.
"""

from longstride.envs.hidden.bandits import (
    Bandit,
    Bandits,
    GaussianBandit,
    GaussianBandits,
    GaussianLinearBandit,
    GaussianLinearBandits,
    LinearBandits,
)
from longstride.envs.hidden.base import HiddenEnv, HiddenWorlds, Life, Rule, rule_of
from longstride.envs.hidden.corridors import Corridor, Corridors
from longstride.envs.hidden.dark_rooms import DarkRoom, DarkRooms
from longstride.envs.hidden.several import SeveralWorlds

__all__ = [
    "Bandit",
    "Bandits",
    "Corridor",
    "Corridors",
    "DarkRoom",
    "DarkRooms",
    "GaussianBandit",
    "GaussianBandits",
    "GaussianLinearBandit",
    "GaussianLinearBandits",
    "HiddenEnv",
    "HiddenWorlds",
    "Life",
    "LinearBandits",
    "Rule",
    "SeveralWorlds",
    "rule_of",
]
