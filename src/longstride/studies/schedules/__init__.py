"""Schedules of the horizon: seven of them on trails of pages, beside the best fixed horizon of a sweep whose cost is counted.

A growing horizon is said to beat a fixed one; but which fixed one? Whoever may try five and keep the best has a strong rival, and has paid for
five runs. So the rival comes in two forms: `best_fixed`, whose horizon was found beforehand and costs nothing, and `swept`, which has a
fifth of the episodes of every iteration, because the sweep took the rest.

All are tested within 32 turns. What is counted is episodes: a schedule of long horizons takes more steps for as many.

| arm | turns in training, by iteration | source |
|---|---|---|
| `slow` | 8, 16, 24, 32, 40, 48, two iterations each | our own |
| `multiplicative` | 8 i, at most 48 | `tti` (arXiv 2506.07976), its choice |
| `additive` | 8, and 4 more every iteration, at most 48 | the other rule that `tti` compares |
| `staged` | 8, 24, 48, four iterations each | `scaling_inter` (arXiv 2509.08755) |
| `by_difficulty` | easy 10, medium 20, hard 30 | `webgym` (arXiv 2601.02439) |
| `worth` | by what further turns bring | `worth` |
| `short`, `long` | 8; 48 | |
| `best_fixed` | the best of 6, 8, 12, 20, 32 on tuning seeds, which cost nothing | |
| `swept` | the same, with a fifth of the episodes | |

`schedules/distance` is the same under a test of distances that training never has, and says what each distance costs under each schedule.

Deviations: no paper compares these. Everything but the limit of turns is `tti` on trails.
"""

from longstride.papers.card import Study

CARD = Study(title="Which schedule of the horizon, and is it worth a sweep", topics=("agents", "horizon"))
