"""What README.md and docs/tti.md say of `make train` is what docs/tti_main_job.json keeps."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tables_of_the_main_job_are_of_the_runs_that_are_kept() -> None:
    from examples import main_job

    told = (DOCS / "tti.md").read_text("utf-8")
    new, *_, held_out, _ = rows = main_job.table()
    for row in (*rows, *main_job.horizon_table()):
        assert row in told
    readme = (DOCS.parent / "README.md").read_text("utf-8").replace("**", "")
    for row in (new, held_out):
        assert row.partition(" | ")[2] in readme
