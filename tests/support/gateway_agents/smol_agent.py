"""An agent of smolagents, which ends by a tool."""
# pyright: reportMissingImports=false

import os

from smolagents import OpenAIServerModel, ToolCallingAgent, tool

pressed = []


@tool
def press(button: str) -> str:
    """Presses a button.

    Args:
        button: its name.
    """
    pressed.append(button)
    return f"{button} is lit"


model = OpenAIServerModel("policy", os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
ToolCallingAgent([press], model, verbosity_level=0).run(os.environ["LONGSTRIDE_GOAL"])
print(float(pressed == ["left", "right"]))
