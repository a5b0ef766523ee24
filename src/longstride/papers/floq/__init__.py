"""floq: critics by flow matching. Agrawalla et al., 2025, arXiv 2509.06863.

A critic that is a velocity field: a number that is drawn as noise is carried, in several steps, to the value of an action, and
the field is told at all places of the way where to go. So a value is computed step by step, more steps are more compute for
it, and each step is supervised. A second paper (What does flow matching bring to TD learning?, arXiv 2603.04333) finds that
the gain does not come from modelling the distribution of the return, which the field does not learn: later steps repair what
earlier ones got wrong, and a field that leads to targets also follows new ones.

| place | choice | papers and released code | here |
|---|---|---|---|
| plan, roll out | offline and then online | OGBench, 1M to 2M steps; UTD up to 16 online | Pendulum-v1 online; recorded data |
| value | `FlowReturns`: noises a value, steps | 8, 8 | 4, 4 (`floq/recorded`: 8, 8) |
| value | noise | 0.1 of the range of values | the same |
| value | what the field sees of a number | 50 bins, deviation of 16 bins, over the range and 1 % more | the same, over the range |
| value | what it sees of the time | its cosine | the same |
| value | two fields, what policies raise | mean or, by task, the least; two plain networks toward the read-out | the least; the same |
| policy | what acts | FQL: one step that imitates a flow, and raises Q | `SAC`; offline with the distance to the data (`alpha`) |
| update | Adam 3e-4, tau 0.005 | four layers of 512, batch 256 | 1e-3, 0.01; two of 64, 128 |

`floq/utd` has the claim: many updates to a step.

Deviations: policies are Gaussian, so what the paper has with FQL's is not shown. The code was read in the authors' repository
and in a public copy of its agent; the loss is computed by hand in the tests.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="floq: Training Critics via Flow-Matching for Scaling Compute in Value-Based RL",
    authors="Bhavya Agrawalla, Michal Nauman, Khush Agrawal, Aviral Kumar",
    year=2025,
    arxiv="2509.06863",
    read="notes",
    topics=("values", "scaling"),
    systems=(12,),
)
