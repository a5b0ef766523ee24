import sqlite3
import unittest


class TestHidden(unittest.TestCase):
    def setUp(self) -> None:
        self.table = sqlite3.connect("/app/store.db")
        self.addCleanup(self.table.close)

    def test_moves_that_were_made_twice_are_gone(self) -> None:
        self.assertEqual([row[0] for row in self.table.execute("select id from moves order by id")], [1, 2, 3, 5, 6])

    def test_the_stock_is_what_is_left(self) -> None:
        found = list(self.table.execute("select item, amount from stock order by item"))
        self.assertEqual(found, [("bolt", 4), ("nut", 20)])
