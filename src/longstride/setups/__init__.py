"""Setups: what the recipes of several papers begin with. Each module is a kind of problem: `puzzles`, `duels`,
`sites`, `dial` and `trials` for language models, `maze`, `pendulum` and `recorded` (data of others) for networks that
learn values.
"""
