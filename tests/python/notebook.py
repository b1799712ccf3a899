"""usage: notebook.py [--write] NOTEBOOK

Runs the code cells of a notebook in order, as Jupyter does, without Jupyter, and compares what they print with what is stored in it.
Of cells with the tag "varies" the numbers may be others. --write stores what they print.
"""
import ast
import contextlib
import io
import json
import pathlib
import re
import sys

NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?|True|False")


def run_cell(source, names):
    """Returns the outputs of a cell as a notebook stores them. The value of its last line is one."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(last, "<cell>", "eval"), names)
    outputs = [{"name": "stdout", "output_type": "stream", "text": said.getvalue().splitlines(True)}] if said.getvalue() else []
    if value is not None:
        outputs.append({"data": {"text/plain": repr(value).splitlines(True)}, "execution_count": None, "metadata": {},
                        "output_type": "execute_result"})
    return outputs


def text_of(outputs, varies=False):
    """What outputs say, in one text; `varies`: with # for each number or truth value."""
    parts = []
    for output in outputs:
        if output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}")
            continue
        text = output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
        parts.append(text if isinstance(text, str) else "".join(text))
    text = "\n".join(parts)
    return NUMBER.sub("#", text) if varies else text


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def differences(notebook, outputs):
    """A text for each code cell whose outputs are not the stored ones."""
    found = []
    for cell, said in zip(code_cells(notebook), outputs):
        varies = "varies" in cell["metadata"].get("tags", [])
        stored, now = text_of(cell["outputs"], varies), text_of(said, varies)
        if stored != now:
            found.append(f"cell {cell['id']}: stored:\n{stored}\nnow:\n{now}")
    return found


def run(notebook):
    """Returns the outputs of all code cells, and the names that they defined."""
    names = {"__name__": "__main__"}
    return [run_cell("".join(cell["source"]), names) for cell in code_cells(notebook)], names


def main(words):
    path = pathlib.Path(words[-1])
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs, _ = run(notebook)
    if words[0] != "--write":
        sys.exit("\n".join(differences(notebook, outputs)) or None)
    for count, (cell, said) in enumerate(zip(code_cells(notebook), outputs), 1):
        cell["outputs"], cell["execution_count"] = said, count
        for output in said:
            if "execution_count" in output:
                output["execution_count"] = count
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
