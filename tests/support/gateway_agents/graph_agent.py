"""An agent of LangGraph, with LangChain's client of OpenAI's form."""
# pyright: reportMissingImports=false

import os

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

pressed = []


@tool
def press(button: str) -> str:
    """Presses a button."""
    pressed.append(button)
    return f"{button} is lit"


agent = create_react_agent(ChatOpenAI(model="policy"), [press])
agent.invoke({"messages": [("user", os.environ["LONGSTRIDE_GOAL"])]})
print(float(pressed == ["left", "right"]))
