"""validate_sessions.py SCHEMA FILE... prints a line for each FILE: "valid", or where and why it is invalid (jsonschema)."""

import json
import sys

import jsonschema


def verdict(validator, path):
    with open(path, encoding="utf-8") as file:
        errors = sorted(validator.iter_errors(json.load(file)), key=lambda error: list(map(str, error.path)))
    if not errors:
        return "valid"
    where = "/".join(map(str, errors[0].path))
    return f"/{where}: {errors[0].message}".replace("\n", " ")[:300]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    for path in sys.argv[2:]:
        print(verdict(validator, path))


main()
