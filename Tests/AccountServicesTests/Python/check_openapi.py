"""Holds answers of the e-mail relay's API against its OpenAPI document, and the document against OpenAPI 3.1.

Standard input: a JSON array of {method, path, status, body}; the path is one of the document's, the body its text.
"""

import json
import pathlib
import sys

import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

path = pathlib.Path(__file__).resolve().parents[3] / "schemas" / "email-relay.openapi.yaml"
document = yaml.safe_load(path.read_text())
validate(document)
registry = Registry().with_resource("openapi", Resource(contents=document, specification=DRAFT202012))


def pointer(*parts):
    return "openapi#/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in parts)


for answer in json.load(sys.stdin):
    operation = document["paths"][answer["path"]][answer["method"].lower()]
    response = operation["responses"][str(answer["status"])]
    if "$ref" in response:
        place = response["$ref"].removeprefix("#/").split("/")
        response = document["components"]["responses"][place[-1]]
    else:
        place = ["paths", answer["path"], answer["method"].lower(), "responses", str(answer["status"])]
    if "content" not in response:
        assert answer["body"] == "", f"{answer}: a body where there is to be none"
        continue
    schema = {"$ref": pointer(*place, "content", "application/json", "schema")}
    Draft202012Validator(schema, registry=registry).validate(json.loads(answer["body"]))
