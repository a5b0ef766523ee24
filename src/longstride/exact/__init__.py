"""A wing: problems whose answer can be computed, and a learner for them that drives the same credits, losses, samplers and
searches as a language model's.

`experiment` is the recipe and the run, `learner` the gradient and the update; `worlds` are plain NumPy; each further
module is a kind of problem, and what solves it.
"""
