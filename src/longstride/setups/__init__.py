"""Setups: what the recipes of several papers begin with. Each module is a kind of problem: `puzzles` and `sites` for
language models, `maze` for networks that learn values.
"""
