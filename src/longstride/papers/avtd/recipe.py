"""AVTD in any Gymnasium environment whose actions are a box: members of a panel, many updates to a step.

Members are critics of any settings: `agent.levels.0.critic.critics={none={...},norm={...}}`, as many as
`agent.levels.0.extraction.count`. Longer runs may hold out less: `agent.levels.0.critic.held_out=10`.
"""

from longstride.control import SAC, ControlAgent, GaussianPolicy
from longstride.papers.avtd.method import PenalisedTD, panel
from longstride.setups import pendulum

PLAIN = pendulum.CRITIC
MEMBERS = {
    "none": PLAIN,
    "norm": PLAIN.replace(trunk={"norm": True}),
    "decay": PenalisedTD(trunk=PLAIN.trunk, tau=PLAIN.tau, penalty=1e-3),
}
EXTRACTION = SAC(temperature=0.1)
HELD_OUT = 4
"""Of twelve episodes three are held out. Until the first one is, members cannot be told apart and the first one acts."""
_level = panel(MEMBERS, GaussianPolicy(trunk=pendulum.TRUNK), EXTRACTION, pendulum.DATA, HELD_OUT)
RECIPE = pendulum.recipe("avtd", PLAIN, GaussianPolicy(trunk=pendulum.TRUNK), EXTRACTION).replace(
    agent=ControlAgent(levels=(_level,), batch=128, critic_lr=1e-3, policy_lr=1e-3),
    phases=({"iterations": 12, "episodes": 1, "utd": 2.0},),
)
