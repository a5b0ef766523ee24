"""TTI's map: where a growing horizon beats a long one, in a model of filtered cloning that is solved exactly (see `tti`).

Shen et al. (2025, arXiv 2506.07976, section 5) report that growing the horizon beats a fixed long one, and give as the cause that long
successes are full of actions that did not matter, which are cloned with the rest. Three habits are enough to say when: a policy *begins*
to waste steps, *goes on* wasting them, and *quits* at a page with others left to see. Filtered cloning moves each habit towards its share
among successes, so waste that is cloned with a weight above 1 grows by being cloned; a short horizon lets few wasteful successes through.

| what is turned | here | in `tti` | regime |
|---|---|---|---|
| wandering of the start | `begins`, `goes_on`, `quits` | `base-wander`, or the impatient `base` | `wander`, `impatient` |
| favour of short actions | `favour`: how many times a wasteful action weighs | 1/|a|: `home` has 3 tokens, `type search ...` 7, so 7/3 | `favour` |
| noise of the judge | `guesses`: whether right guesses are paid | no evidence is asked for | `guesses` |
| distracting links | `leads_on`: how often a wasted step does the useful one too | further links on every page | `links` |

An update has a closed form. The weighted log-likelihood of a habit x that was followed y times and not followed n times in the cloned
episodes, sum of w log pi = favour y log x + n log(1 - x), is highest at x* = favour y / (favour y + n), and an update goes `rate` of the
way there. So where all episodes succeed, y / (y + n) = x and x* > x whenever favour > 1 and 0 < x < 1: waste amplifies itself. Where
successes have less of it than failures, selection works against that, and the horizon decides how much less.

Success is computed by dynamic programming; the episodes that are cloned are sampled. `tti_regimes` tries it with a language model.

Deviations: no paper has this model; the replay is `TTIReplay` with one class, its draw replaced by its weights; habits and rates are guesses.
"""

from longstride.papers.card import Study

CARD = Study(title="TTI's map: where a growing horizon beats a long one", topics=("horizon",))
