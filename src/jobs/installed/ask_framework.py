"""Asks an installed framework for the names of its flags and keys.

Run by `krigtune recipes --check PYTHON` with that Python:  PYTHON -c THIS REQUEST ANSWER
REQUEST is a part of the block "installed" of a recipe (framework_names.h) as JSON. The answer is written to the file
ANSWER as JSON, because frameworks print what they like when they are imported:
  {"packages": {"torchtitan": "0.3.0"},
   "sources": [{"names": [["--bf16", "--no_bf16"], ["--seed"]], "open": ["fsdp_config"]}, {"trouble": "..."}]}
A list of names has the spellings of one flag; "open" are keys below which anything may be written.
"""
import argparse
import ast
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import sys
import types
import typing
from pathlib import Path

DEEPEST = 8  # classes within classes


class Names:
    """What one source says."""

    def __init__(self):
        self.names, self.open = [], []

    def add(self, *spellings):
        self.names.append(list(spellings))


# --- parsers of argparse

def add_parser(parser, names):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in {id(one): one for one in action.choices.values()}.values():
                add_parser(one, names)
        elif action.option_strings and not isinstance(action, argparse._HelpAction):
            names.add(*action.option_strings)


def ask_argparse(found, names):
    """A parser, a function that makes one, or a function that adds its flags to one."""
    parser = found
    if not isinstance(found, argparse.ArgumentParser):
        needed = [one for one in inspect.signature(found).parameters.values()
                  if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        given = argparse.ArgumentParser() if needed else None
        parser = found(given) if needed else found()
        parser = given if parser is None else parser
    if not isinstance(parser, argparse.ArgumentParser):
        raise TypeError(f"it gives a {type(parser).__name__} and no ArgumentParser")
    add_parser(parser, names)


# --- the text of programs, which may need a GPU to be imported

def folder_of(module):
    spec = importlib.util.find_spec(module)  # of "a.b" this imports a
    if spec is None:
        raise ModuleNotFoundError(f"No module named '{module}'")
    return Path((spec.submodule_search_locations or [Path(spec.origin).parent])[0])


def files_of(module, pattern):
    files = sorted(folder_of(module).glob(pattern))
    if not files:
        raise FileNotFoundError(f"no file {pattern} in {module}")
    return files


def names_in(node):
    """The spellings in a call of add_argument; the key in cfg.get("key") and cfg.key."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if node.func.attr == "add_argument":
            return texts if texts and texts[0].startswith("-") else []
        if node.func.attr == "get" and getattr(node.func.value, "id", "") == "cfg":
            return texts[:1]
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "cfg" and node.attr not in dir(dict):
        return [node.attr]
    return []


def ask_source(module, pattern, names):
    for file in files_of(module, pattern):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            found = names_in(node)
            if found:
                names.add(*found)


# --- classes with fields: dataclasses, pydantic's, typed dictionaries, and the parameters of a function

def fields_of(kind):
    """{name: (annotation, other spellings)}, or None for a type without fields."""
    if dataclasses.is_dataclass(kind):
        return {one.name: (one.type, one.metadata.get("aliases", [])) for one in dataclasses.fields(kind) if one.init}
    for attribute in ("model_fields", "__fields__"):
        fields = getattr(kind, attribute, None)
        if isinstance(fields, dict):
            return {name: (getattr(one, "annotation", None), [one.alias] if getattr(one, "alias", None) else [])
                    for name, one in fields.items()}
    return {name: (written, []) for name, written in kind.__annotations__.items()} if is_typed_dict(kind) else None


def is_typed_dict(kind):
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def hints_of(kind):
    try:
        return typing.get_type_hints(kind)
    except Exception:  # an annotation names what is only imported for type checkers
        return {}


def arms_of(kind):
    """The types that a value may have: those of a union, without what only annotates."""
    origin = typing.get_origin(kind)
    if origin is typing.Union or (origin is not None and origin is getattr(types, "UnionType", None)):
        return [arm for one in typing.get_args(kind) for arm in arms_of(one)]
    if hasattr(kind, "__metadata__"):  # typing.Annotated
        return arms_of(typing.get_args(kind)[0])
    return [kind]


def is_open(kind):
    kind = typing.get_origin(kind) or kind
    return kind is typing.Any or kind is object or (isinstance(kind, type) and issubclass(kind, dict))


def add_field(prefix, name, spellings, kind, names, depth):
    arms = arms_of(kind)
    inner = [arm for arm in arms if isinstance(arm, type) and fields_of(arm)]
    if any(is_open(arm) for arm in arms if arm not in inner):
        names.open.append(prefix + name)
    if inner and depth < DEEPEST:
        for arm in inner:
            add_fields(arm, prefix + name + ".", names, depth + 1)
    else:
        names.add(*(prefix + one for one in [name, *spellings]))


def add_fields(kind, prefix, names, depth=0):
    hints = hints_of(kind)
    for name, (written, spellings) in fields_of(kind).items():
        add_field(prefix, name, spellings, hints.get(name, written), names, depth)


def ask_fields(found, names):
    if isinstance(found, type) and fields_of(found):
        add_fields(found, "", names)
        return
    hints = hints_of(found)
    for name, one in inspect.signature(found).parameters.items():
        if one.kind is one.VAR_KEYWORD:
            names.open.append("")
        elif name != "self" and one.kind is not one.VAR_POSITIONAL:
            add_field("", name, [], hints.get(name, one.annotation), names, 0)


# --- values: an object whose fields hold others, and files

def add_values(value, prefix, names, depth=0):
    inner = {}
    if dataclasses.is_dataclass(value) and depth < DEEPEST:
        inner = {one.name: getattr(value, one.name, None) for one in dataclasses.fields(value) if one.init}
    elif isinstance(value, dict) and depth < DEEPEST:
        inner = {str(key): one for key, one in value.items()}
    for name, one in inner.items():
        add_values(one, prefix + name + ".", names, depth + 1)
    if not inner and prefix:
        names.add(prefix[:-1])


def ask_values(found, names):
    """An object, or a function that makes one: the fields that its values have."""
    add_values(found if dataclasses.is_dataclass(found) or isinstance(found, dict) else found(), "", names)


def ask_yaml(module, pattern, names):
    import yaml
    for file in files_of(module, pattern):
        add_values(yaml.safe_load(file.read_text(encoding="utf-8")), "", names)


def ask_hydra(module, path, names):
    import hydra
    from omegaconf import OmegaConf
    file = folder_of(module) / path
    with hydra.initialize_config_dir(str(file.parent.resolve()), version_base=None):
        composed = hydra.compose(file.stem)
    add_values(OmegaConf.to_container(composed, resolve=False), "", names)


# --- the request

def found_object(module, path):
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def answer_of(source):
    names, kind, module, path = Names(), source["kind"], source["module"], source["object"]
    if kind in ("source", "yaml", "hydra"):
        {"source": ask_source, "yaml": ask_yaml, "hydra": ask_hydra}[kind](module, path, names)
    else:
        {"argparse": ask_argparse, "fields": ask_fields, "values": ask_values}[kind](found_object(module, path), names)
    unique = {json.dumps(one): one for one in names.names}
    return {"names": list(unique.values()), "open": sorted(set(names.open))}


def versions_of(packages):
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return versions


def main():
    request, answer_file = json.loads(sys.argv[1]), sys.argv[2]
    sys.path = [path for path in sys.path if path]  # no module of the working directory
    answer = {"packages": versions_of(request["packages"]), "sources": []}
    for source in request["sources"] if answer["packages"] else []:
        try:
            answer["sources"].append(answer_of(source))
        except (Exception, SystemExit) as error:
            answer["sources"].append({"trouble": f"{type(error).__name__}: {error}"})
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


main()
