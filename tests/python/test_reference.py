"""docs/python_reference.md says what the docstrings say."""
import pathlib
import unittest

import krigtune
import reference

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python_reference.md"


class ReferenceTest(unittest.TestCase):
    def test_the_page_is_what_the_docstrings_say(self):
        self.assertEqual(PAGE.read_text(encoding="utf-8"), reference.page(),
                         f"if that is right: python3 tests/python/reference.py --write {PAGE}")

    def test_every_name_of_the_package_is_on_the_page(self):
        page = reference.page()
        for name in krigtune.__all__:
            self.assertRegex(page, f"\n### `krigtune\\.{name}[(`]")

    def test_names_become_a_list_and_examples_code(self):
        docstring = "Does it.\n\n    run(\n        1)\n\nseed, jobs: numbers\n    from 1\nvalue: another\n\nThe rest."
        self.assertEqual(reference.in_markdown(docstring), [
            "Does it.", "", "```python", "run(", "    1)", "```", "", "- **seed, jobs**: numbers", "  from 1", "- **value**: another", "",
            "The rest."])


if __name__ == "__main__":
    unittest.main()
