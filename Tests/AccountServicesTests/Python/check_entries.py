"""Holds entries of the audit log against schemas/audit-entry.v1.json, and their form against RFC 8785.

Standard input: an entry a line. Exit code 1 and a reason on the standard error where one is not as it is to be.
"""

import json
import pathlib
import sys

import rfc8785
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

schemas = pathlib.Path(__file__).resolve().parents[3] / "schemas"
schema, outcome = (
    json.loads((schemas / name).read_text()) for name in ("audit-entry.v1.json", "account-outcome.v1.json")
)
registry = Registry().with_resource(outcome["$id"], Resource.from_contents(outcome))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema, registry=registry)

for line in sys.stdin.buffer.read().splitlines():
    entry = json.loads(line)
    validator.validate(entry)
    assert rfc8785.dumps(entry) == line, "not in canonical form"
