"""Trails as charts."""

from longstride.core.task import Task
from longstride.envs.chart import MOST_PAGES, Chart, ChartPage
from longstride.envs.dial.trail import Place, Trail


def chart_of(task: Task) -> Chart | None:
    """All places of a task's trail, nearest first; None where they are more than `MOST_PAGES`: they grow as the links
    of a page to the power of `astray`. Raises: TaskError where it is none."""
    trail = Trail.of(task)
    places: dict[Place, int] = {(0,): 0}
    pages = []
    waiting: list[Place] = [(0,)]
    for place in waiting:
        shown, links = trail.page(place), [places[place]] * trail.help
        for number in range(1, len(shown.links) + 1):
            after = trail.after(place, number)
            if after not in places:
                places[after] = len(places)
                waiting.append(after)
            links.append(places[after])
        if len(places) > MOST_PAGES:
            return None
        pages.append(ChartPage(shown.text(), tuple(links)))
    return Chart(task.goal, tuple(pages), trail.answer, trail.distance)
