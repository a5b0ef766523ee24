import unittest

from words import count_words


class TestWords(unittest.TestCase):
    def test_a_word_that_occurs_twice_counts_twice(self) -> None:
        self.assertEqual(count_words("to be or not to be"), {"to": 2, "be": 2, "or": 1, "not": 1})


if __name__ == "__main__":
    unittest.main()
