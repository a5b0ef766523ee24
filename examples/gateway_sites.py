"""TTI on the embedded sites, of an agent that only calls a chat API.

    pip install openai
    longstride train examples/gateway_sites.py

`gateway_sites_agent.py` is a program of sixty lines with the package `openai`. Every request that it sends is a turn of
an episode: the policy samples the reply, the schedule of the horizon ends it, and its last line is the answer that the
task's evaluator judges. Tasks, budget and seeds are those of `NATIVE`, where the environment itself is the loop; so are
all ids, and the curve. As a program of its own for every episode it is

    longstride train examples/gateway_sites.py tasks.agent.type=command \
        'tasks.agent.command=["python", "examples/gateway_sites_agent.py"]'
"""

from longstride import papers
from longstride.adapters.gateway.agents import Function
from longstride.adapters.gateway.source import ChatGateway
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.rollout import AsRequested, FullHistory

SITES = EmbeddedWeb(errands=("find", "compare", "survey", "hop"))
"""Tasks whose answer alone is judged, for the sites are the agent's own; some of `search` are judged by a site."""
NATIVE = papers.load("tti").replace(
    name="native_sites",
    tasks=SITES,
    context=FullHistory(),
    # nobody knows what a program saw, and which of its actions did nothing
    reward={"evidence": False},
    credit={"drop_unchanged": False},
)
RECIPE = NATIVE.replace(
    name="gateway_sites",
    tasks=ChatGateway(
        agent=Function(function="gateway_sites_agent:play", at_once=64), tasks=SITES, result="answer", calls="text"
    ),
    context=AsRequested(),
)
