"""usage: reference.py [--write] PAGE

Makes the reference of the Python package from its docstrings, and compares it with a page. --write stores it there.
The modules are read, not imported, because some of them need Optuna, Ray or transformers.
"""
import ast
import inspect
import pathlib
import re
import sys

PACKAGE = pathlib.Path(__file__).parents[2] / "src/python/krigtune"
BEGIN = """# The Python package, name by name

Made from the docstrings (`python3 tests/python/reference.py --write docs/python_reference.md`); [From Python](python.md) shows how the
parts work together. Times are in seconds, memory is in bytes, values are in the unit of the objective.
"""
MODULES = ("optuna", "ray", "transformers")  # with names of their own besides those of krigtune itself
ITEM = re.compile(r"([a-z_]+(?:, [a-z_]+| and [a-z_]+)*): ")


def in_markdown(docstring):
    """Lines that begin with a name and a colon become items of a list, indented examples become blocks of code."""
    lines, code = [], False
    for line in docstring.splitlines():
        is_code = line.startswith("    ") and (code or (lines and not lines[-1]))
        if is_code != code and line:
            lines[-1:] = ["", "```python"] if is_code else ["```", ""]  # a blank line is before the code, and after it
            code = is_code
        if code:
            lines.append(line[4:])
            continue
        item = ITEM.match(line)
        if item:
            if lines and lines[-1] and not lines[-1].startswith(("- ", "  ")):
                lines.append("")
            lines.append(f"- **{item[1]}**: {line[item.end():]}")
        else:
            lines.append(line.replace("    ", "  ", 1) if line.startswith("    ") else line)
    return lines + ["```"] * code


def signature(function, name):
    arguments = function.args
    if arguments.posonlyargs + arguments.args and (arguments.posonlyargs + arguments.args)[0].arg == "self":
        arguments.args.pop(0)
    for one in [*arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if one is not None:
            one.annotation = None
    return f"{name}({ast.unparse(arguments)})"


def is_overload(function):
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in function.decorator_list)


def is_property(function):
    return any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list)


def fields(node, source):
    """The fields of a dataclass, and what the comments beside them say."""
    for one in node.body:
        if node.decorator_list and isinstance(one, ast.AnnAssign):
            said = source[one.lineno - 1].partition("#: ")[2]
            yield f"- **{one.target.id}** (`{ast.unparse(one.annotation)}`)" + (f": {said}" if said else "")


def describe_class(node, name, source):
    members = [one for one in node.body if isinstance(one, ast.FunctionDef) and not is_overload(one)]
    own = [one for one in members if one.name == "__init__"]
    yield f"### `{signature(own[0], name) if own else name}`"
    yield ""
    yield from in_markdown(inspect.cleandoc(ast.get_docstring(node)))
    listed = list(fields(node, source))
    if listed:
        yield from ["", *listed]
    variable = re.findall("[A-Z][a-z]+", name)[-1].lower()  # study of Study, reporter of StepReporter
    for one in members:
        text = ast.get_docstring(one)
        if one.name.startswith("_") or not text:
            continue
        shown = one.name if is_property(one) else signature(one, one.name)
        yield from ["", f"#### `{variable}.{shown}`", "", *in_markdown(text)]


def describe(node, name, source):
    if isinstance(node, ast.ClassDef):
        return list(describe_class(node, name, source))
    return [f"### `{signature(node, name)}`", "", *in_markdown(ast.get_docstring(node))]


def definitions(path):
    """The public functions and classes of a module with their lines."""
    source = path.read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            found[node.name] = (node, source.splitlines())
    return found


def exported():
    """The names that `import krigtune` gives, in the order of the modules that have them."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield node.module, [one.name for one in node.names]


def page():
    lines = [BEGIN, "## krigtune"]
    of_modules = {module: (definitions(PACKAGE / f"{module}.py"), names) for module, names in exported()}
    for module in sorted(of_modules, key=["_study", "_space", "_steps", "_server"].index):
        found, names = of_modules[module]
        for name, (node, source) in found.items():
            if name in names:
                lines += ["", *describe(node, f"krigtune.{name}", source)]
    for module in MODULES:
        lines += ["", f"## krigtune.{module}"]
        for name, (node, source) in definitions(PACKAGE / f"{module}.py").items():
            if not name.startswith("_"):
                lines += ["", *describe(node, f"krigtune.{module}.{name}", source)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def main(words):
    if words[0] == "--write":
        pathlib.Path(words[1]).write_text(page(), encoding="utf-8")
    elif pathlib.Path(words[0]).read_text(encoding="utf-8") != page():
        sys.exit(f"{words[0]} is not what the docstrings say; write it anew with --write")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
