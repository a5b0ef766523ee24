"""Fine-tuning on labels, ten times as many as `moderation` has.

With your own: `longstride train moderation/labels model=MODEL tasks.type=dataset tasks.path=labels.jsonl`.
"""

from longstride.papers.moderation.recipe import LABELS, labels
from longstride.papers.moderation.recipe import RECIPE as RL

RECIPE = RL.replace(name="moderation/labels", **labels(10 * LABELS))
