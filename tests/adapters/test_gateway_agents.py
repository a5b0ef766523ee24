"""Agents that others wrote, unchanged from their packages: `AGENTS_PYTHON` is the Python of an environment that has
them (`pip install openai-agents 'pydantic-ai-slim[openai,anthropic]' 'smolagents[openai]' langgraph langchain-openai`).
"""

import os
from pathlib import Path

import pytest
from gateway_programs import episodes

from longstride.adapters.gateway.agents import Command
from longstride.adapters.gateway.source import ChatGateway
from longstride.core.budget import StopReason
from longstride.core.processes import Limits
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.rollout import Episode

PYTHON = os.environ.get("AGENTS_PYTHON", "")
AGENTS = Path(__file__).parents[1] / "support" / "gateway_agents"
DONE = {"smol_agent": '<tool_call>{"name": "final_answer", "arguments": {"answer": "done"}}</tool_call>'}

pytestmark = pytest.mark.skipif(not PYTHON, reason="AGENTS_PYTHON names no Python that has these agents")


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("openai_agents", ()),
        ("pydantic_agent", ("openai-chat:policy",)),
        ("pydantic_agent", ("openai-responses:policy",)),
        ("pydantic_agent", ("anthropic:policy",)),
        ("smol_agent", ()),
        ("graph_agent", ()),
    ],
)
def test_an_agent_of_others_calls_its_tools_and_ends(agent: str, words: tuple[str, ...]) -> None:
    said = [f'<tool_call>{{"name": "press", "arguments": {{"button": "{b}"}}}}</tool_call>' for b in ("left", "right")]
    said.append(DONE.get(agent, "done"))

    def says(e: Episode) -> str:
        return said[min(e.turns, 2)]

    command = (PYTHON, str(AGENTS / f"{agent}.py"), *words)
    readable = (str(Path(PYTHON).parents[1]),)
    program = Command(command=command, readable=readable, limits=Limits(seconds=600.0, memory=8192))
    (t,) = episodes(ChatGateway(agent=program, tasks=EmbeddedWeb(), deadline=55.0), says)
    assert t.stop is StopReason.ENV_ENDED and t.reward == 1 and t.length == 3, (t.evidence, t.turns)
    assert [turn.action for turn in t.turns][:2] == [f'press {{"button": "{b}"}}' for b in ("left", "right")]
    if agent != "smol_agent":  # it writes calls and what came of them anew, as text
        assert not any(turn.fork for turn in t.turns)
