"""Questions about a library, answered with the tools of an MCP server, trained with GRPO.

    pip install 'longstride[mcp]' mcp
    longstride train examples/mcp_library.py model=Qwen/Qwen3-0.6B

Every episode starts `mcp_library_server.py` as a process of its own and talks with it over stdio. The goal is the
question, and the server's tools with their arguments; the agent calls one in each turn and ends with an answer:

    Action: shelf {"row": "low"}          ->  Ulysses, Dracula, Faust
    Action: pages {"book": "Dracula"}     ->  418
    Action: answer Dracula

Arguments are checked against the tool's JSON schema before the server sees them. Any server will do: `command` may be
`("npx", "-y", "@modelcontextprotocol/server-filesystem", "/data")`, and `tools` names those that may be used.
"""

import sys
from pathlib import Path

from longstride.adapters.dataset import Dataset
from longstride.adapters.mcp import MCP
from longstride.curriculum import BudgetSchedule
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, OnPolicy
from longstride.rewards import TaskReward
from longstride.rollout import FullHistory
from longstride.run.recipe import Evaluation, Recipe

HERE = Path(__file__).parent

RECIPE = Recipe(
    name="mcp_library",
    iterations=50,
    episodes_per_iteration=64,
    group_size=8,
    model="Qwen/Qwen3-0.6B",
    tasks=MCP(
        command=(sys.executable, str(HERE / "mcp_library_server.py")),
        tasks=Dataset(path=HERE / "data" / "library.jsonl", prompt="question", match="exact", test_share=0.3),
    ),
    budget=BudgetSchedule(turns=8, turn_tokens=96),
    test_budget=BudgetSchedule(turns=8, turn_tokens=96),
    context=FullHistory(),
    reward=TaskReward(),
    replay=OnPolicy(),
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="episode")),
    learner=LearnerConfig(lr=1e-5, warmup_steps=5),
    evaluation=Evaluation(tasks=2, every=10),
)
