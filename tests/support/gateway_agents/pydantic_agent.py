"""An agent of pydantic-ai, with a model of OpenAI's form or of Anthropic's."""
# pyright: reportMissingImports=false

import os
import sys

from pydantic_ai import Agent

agent = Agent(sys.argv[1], instructions="You press buttons.")
pressed = []


@agent.tool_plain
def press(button: str) -> str:
    """Presses a button."""
    pressed.append(button)
    return f"{button} is lit"


agent.run_sync(os.environ["LONGSTRIDE_GOAL"])
print(float(pressed == ["left", "right"]))
