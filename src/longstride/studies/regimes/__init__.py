"""Regimes: where a growing horizon pays on trails of pages, predicted by the exact model and then run (see `tti`).

`tti_map` computes what filtered cloning does to three habits of a start, and so what a growing, a long and a short horizon end with. Here its
predictions are held to account: from the habits that the start shows in each regime, measured before anything is trained, a command writes
sign and size of both differences into a file that is committed; another command runs the regimes with the language model.

| regime | what is turned |
|---|---|
| `middle` | nothing: distances 2 to 16, tests at 24 turns, equal weights, an exact judge |
| `near` | distance: 2 to 6 |
| `far` | distance: 9 to 24, tests at 36 turns; no task can be done within the short horizon |
| `calm` | waste: no page has a link to itself, so the start idles less |
| `favour` | `calm`, and cloning weighs by 1/|a|: the idle action is half as long as a useful one, so it weighs twice |
| `judge` | the judge: three in ten wrong answers are paid in training |
| `far_judge` | distance and judge |

    python examples/regimes.py predict
    python examples/regimes.py run
    python examples/regimes.py judge

Predictions beside results are in `docs/horizons.md`.

Deviations: no paper asks this. The model's rate of learning (half of the way in an iteration) is a guess that was never fitted to runs.
"""

from longstride.papers.card import Study

CARD = Study(title="Regimes: where a growing horizon pays, predicted and then run", topics=("agents", "horizon"))
