import unittest

from words import count_words


class TestHidden(unittest.TestCase):
    def test_case_and_punctuation_do_not_matter(self) -> None:
        self.assertEqual(count_words("Yes, yes!\nNo."), {"yes": 2, "no": 1})

    def test_an_empty_text_has_no_words(self) -> None:
        self.assertEqual(count_words("  "), {})
