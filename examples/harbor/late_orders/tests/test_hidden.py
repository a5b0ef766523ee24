import subprocess
import unittest

HEAD = "id,customer,due,shipped\n"


def late(rows: str, day: str = "2026-03-01") -> list[str]:
    return subprocess.run(
        ["python3", "/app/late.py", day], input=HEAD + rows, capture_output=True, text=True, check=True
    ).stdout.split("\n")[:-1]


class TestHidden(unittest.TestCase):
    def test_the_orders_that_are_there(self) -> None:
        with open("/app/orders.csv") as file:
            self.assertEqual(late(file.read().removeprefix(HEAD)), ["Omar", "Yuki"])

    def test_other_orders(self) -> None:
        rows = '7,"Chen, Olga",2026-01-01,2026-01-02\n8,Ada,2026-03-01,\n9,Ada,2026-02-28,2026-02-28\n'
        self.assertEqual(late(rows), ["Chen, Olga"])
