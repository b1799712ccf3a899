#!/usr/bin/env python3
"""usage: check_docs.py SOURCE_DIR

Pages that a reader can rely on: every relative link of every Markdown file leads to a file that is there, and to a heading of it; every
page of docs is linked from docs/README.md; no page is longer than one sitting. Pages that are printed by the programs may be longer.
"""
import pathlib
import re
import subprocess
import sys

MOST_LINES = {"README.md": 180}
MOST_LINES_OF_A_PAGE = 250
GENERATED = {"docs/cli.md", "docs/session.md"}  # one section a command, or a key: they are looked up, not read


def slug(heading):
    """The anchor that GitHub makes of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors_of(page):
    return {slug(line.lstrip("#")) for line in without_code(page.read_text()).splitlines() if line.startswith("#")}


def broken_links(root, page):
    text = re.sub(r"`[^`\n]*`", "", without_code(page.read_text()))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists():
            yield f"{page.relative_to(root)}: there is no {target}"
        elif anchor and linked.suffix == ".md" and anchor not in anchors_of(linked):
            yield f"{page.relative_to(root)}: {path or 'the page'} has no heading #{anchor}"


def too_long(root, page):
    name = str(page.relative_to(root))
    most = MOST_LINES.get(name, MOST_LINES_OF_A_PAGE)
    lines = len(page.read_text().splitlines())
    if name not in GENERATED and (name in MOST_LINES or name.startswith("docs/")) and lines > most:
        yield f"{name}: {lines} lines are more than {most}; split the page, or say less"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True).stdout.split()
    pages = [root / name for name in listed if (root / name).exists()] or sorted(root.glob("**/*.md"))
    faults = [fault for page in pages for check in (broken_links, too_long) for fault in check(root, page)]
    index = (root / "docs/README.md").read_text()
    for page in sorted((root / "docs").glob("**/*.md")):
        name = str(page.relative_to(root / "docs"))
        if name != "README.md" and f"({name}" not in index:
            faults.append(f"docs/README.md does not link {name}")
    print("\n".join(faults) if faults else f"{len(pages)} pages: every link leads somewhere")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
