#!/usr/bin/env python3
"""usage: check_words.py SOURCE_DIR

Words that nobody in the field uses, or that nobody understands at once, are in no page of the documentation and in no message of the
programs. Pages are README.md, docs and experiments without code; messages are the string literals of src.
"""
import pathlib
import re
import sys

# Each with what to write instead. "stands for" and "stands out" are English, and so are "Slurm holds the job" and a hold.
WORDS = {
    r"mend(s|ed|ing)?": "fix",
    r"likewise": "say it again",
    r"wherever": "if, where",
    r"of itself": "say what does it",
    r"what is left": "the remaining ...",
    r"to be had": "available",
    r"at work": "running",
    r"in turns": "alternately, one after the other",
    r"anew": "again",
    r"stands?(?= (in|at|on|here|there|twice|beside|behind|before)\b)": "is",
    r"(is|are|be|get|gets) through(?= with\b|[.,;:)]|$)": "has finished, has nothing left to propose",
    r"holds? (not|no|the (studies|study|table|configuration|run)|a (number|table|run|configuration))": "has, contains",
    r"told (the|of|nothing|everything|to|them|so)": "given, reported, configured",
    r"asked (for|to|of)": "requested",
    r"\w+\(s\)": "counted() in core/text.h: 1 trial, 2 trials",
    r"(?<!there )is no (number|file|directory|list|JSON|YAML|TOML|flag|key|parameter|column|unit|text|regular expression)": "is not a ...",
}
# Where a word is the field's: what experiments tell a tuner is a column of their tables, and ask and tell are commands.
ONLY_IN_MESSAGES_AND_DOCS = {r"told (the|of|nothing|everything|to|them|so)", r"asked (for|to|of)"}


def prose(text):
    """A page without fenced code and code spans."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def literals(text):
    """The string literals of C++ code, each as (line, text): adjacent ones are one."""
    pattern = re.compile(r'//[^\n]*|R"([^()\s\\]*)\((.*?)\)\1"|((?:"(?:[^"\\\n]|\\.)*"\s*)+)|\'(?:[^\'\\]|\\.)\'', re.S)
    for found in pattern.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found.group(2) is not None:
            yield line, found.group(2)
        elif found.group(3) is not None:
            yield line, "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found.group(3)))


def faults_of(name, line, text, words):
    for word in words:
        for found in re.finditer(rf"\b{word}\b" if word[-1] not in "$)" else rf"\b{word}", text, flags=re.M | re.I):
            yield f"{name}:{line + text.count(chr(10), 0, found.start())}: '{found.group(0)}'; write: {WORDS[word]}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    faults = []
    pages = [root / "README.md", *sorted((root / "docs").glob("**/*.md")), *sorted((root / "experiments").glob("**/*.md"))]
    for page in pages:
        if not page.exists():
            continue
        name = str(page.relative_to(root))
        words = [word for word in WORDS if not name.startswith("experiments/") or word not in ONLY_IN_MESSAGES_AND_DOCS]
        faults += faults_of(name, 1, prose(page.read_text()), words)
    for source in sorted(path for path in (root / "src").glob("**/*") if path.suffix in {".cpp", ".h", ".cu", ".cuh"}):
        for line, text in literals(source.read_text()):
            if " " in text:
                faults += faults_of(str(source.relative_to(root)), line, text, WORDS)
    print("\n".join(faults) if faults else f"{len(pages)} pages and all messages: only words that people say")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
