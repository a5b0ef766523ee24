"""An agent of the OpenAI Agents SDK, which speaks responses."""
# pyright: reportMissingImports=false

import os

from agents import Agent, Runner, function_tool, set_tracing_disabled

pressed = []


@function_tool
def press(button: str) -> str:
    """Presses a button."""
    pressed.append(button)
    return f"{button} is lit"


set_tracing_disabled(True)
agent = Agent(name="presser", instructions="You press buttons.", tools=[press], model="policy")
Runner.run_sync(agent, os.environ["LONGSTRIDE_GOAL"])
print(float(pressed == ["left", "right"]))
