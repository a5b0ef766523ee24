"""A library as an MCP server: its two tools are what the agent of `mcp_library.py` can use."""

from mcp.server import MCPServer

SHELVES = {"top": ["Moby Dick", "Emma"], "low": ["Ulysses", "Dracula", "Faust"]}
PAGES = {"Moby Dick": 635, "Emma": 474, "Ulysses": 730, "Dracula": 418, "Faust": 158}
server = MCPServer("library")


@server.tool()
def shelf(row: str) -> str:
    """The books of a row: top or low."""
    return ", ".join(SHELVES[row])


@server.tool()
def pages(book: str) -> int:
    """How many pages a book has."""
    return PAGES[book]


if __name__ == "__main__":
    server.run()
