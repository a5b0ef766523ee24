"""Adapters: environments and data sets of other libraries as task sources. A wing: nothing of the core imports it.

| `type` | what it plays | extra |
|---|---|---|
| `gymnasium` | any Gymnasium environment with discrete or text actions | `gymnasium` |
| `textarena` | TextArena's games, alone or against somebody | `textarena` |
| `textworld` | TextWorld's games, made from seeds: quests of so many commands | `textworld` |
| `verifiers` | an environment of the verifiers library, with its own rewards | `verifiers` |
| `openenv` | an environment behind an OpenEnv server | `openenv` |
| `harbor` | Harbor's task folders, without containers | bubblewrap, a program |
| `mcp` | the tools of an MCP server, on tasks of a data set | `mcp` |
| `dataset` | prompts and answers from JSON lines or Parquet | `parquet` for Parquet |

What always holds in all of them: what the policy says is parsed and never executed, and nothing it says raises; what
somebody else's code raises becomes one message that names it and the line (`foreign.guarded`); what a server sends is
bounded in size and in time. Their packages are imported on first use.
"""
