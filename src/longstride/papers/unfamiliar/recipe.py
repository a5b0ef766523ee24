"""Fine-tuning on facts of which a third is unfamiliar: the recipe and its claim."""

from typing import Any

from longstride.claims.claim import Claim
from longstride.envs.puzzles import Facts
from longstride.learner.config import LearnerConfig
from longstride.papers.unfamiliar.method import Apt, RelabelledUnfamiliar, Unknown
from longstride.run.imitation import Cloning
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct

RECIPE = puzzles.tested(
    "unfamiliar",
    (Direct(),),
    model="base-facts",
    tasks=Facts(),
    cloning=Cloning(
        demonstrations=RelabelledUnfamiliar(),
        episodes=900,
        learner=LearnerConfig(lr=1e-3, warmup_steps=10, batch_samples=32),
    ),
    budget={"turn_tokens": 8},
    test_budget={"turn_tokens": 8},
    evaluation={"measures": (Apt(), Unknown(difficulty="easy"), Unknown(difficulty="hard"))},
)


def labelled(**labels: Any) -> dict[str, Any]:
    """The change of a recipe to demonstrations with these fields of `RelabelledUnfamiliar`."""
    return {"cloning": {"demonstrations": labels}}


CLAIM = Claim(
    name="unfamiliar",
    paper="arXiv 2403.05612, abstract and introduction",
    statement="Asked what it was never told, a fine-tuned model says what the unfamiliar ones of its examples were labelled: "
    "that it does not know, if they say so, and it goes on answering what it was told. As many such labels on other examples "
    "do not do it.",
    recipe=RECIPE,
    arms={
        "relabelled": RECIPE,
        "true_labels": RECIPE.replace(**labelled(share=0.0)),
        "by_chance": RECIPE.replace(**labelled(by="chance")),
        "share_10": RECIPE.replace(**labelled(share=0.1)),
        "share_20": RECIPE.replace(**labelled(share=0.2)),
    },
    measure="apt",
    expected=Ordering(relations=("relabelled > true_labels by 0.1", "relabelled > by_chance by 0.1")),
    # what is labelled has to be unfamiliar: as many such labels are not enough
    control=Ordering(relations=("by_chance > true_labels by 0.1",)),
    dose=("share_10 > true_labels", "share_20 > true_labels", "relabelled > true_labels"),
    reported=Ordering(
        relations=(
            "relabelled > by_chance in unknown_hard",
            "by_chance > relabelled in unknown_easy",
            "true_labels > relabelled in success",
        )
    ),
    seeds=tuple(range(1050, 1060)),
    tuning_seeds=(950, 951),
    grid={"cloning.learner.lr": (5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 4e-3)},
    cost="iterations",
)
