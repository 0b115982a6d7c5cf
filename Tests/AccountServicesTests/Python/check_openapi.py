"""Holds answers of an API against its OpenAPI document, and the document against OpenAPI 3.1.

Argument: the document's name in schemas/ before .openapi.yaml; email-relay without one.
Standard input: a JSON array of {method, path, status, body}; the path is one of the document's, the body its text. Headers,
by name, and a request's body are checked where the answer has `headers` and `asked`. A body of server-sent events has whole
ones.
"""

import json
import pathlib
import sys

import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

path = pathlib.Path(__file__).resolve().parents[3] / "schemas" / f"{(sys.argv[1:] or ['email-relay'])[0]}.openapi.yaml"
document = yaml.safe_load(path.read_text())
validate(document)
registry = Registry().with_resource("openapi", Resource(contents=document, specification=DRAFT202012))


def pointer(*parts):
    return "openapi#/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in parts)


def check_events(text):
    """Each event's data against the schema that bears its name: sessions-ended against sessionsEnded."""
    for block in text.removesuffix("\n\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        fields = dict(line.split(": ", 1) for line in lines)
        assert len(fields) == len(lines) and fields.keys() <= {"event", "id", "data", "retry"}, f"{block}"
        assert ("event" in fields) == ("data" in fields), f"{block}"
        if "id" in fields:
            schema = {"$ref": pointer("components", "schemas", "eventPosition")}
            Draft202012Validator(schema, registry=registry).validate(fields["id"])
        if "event" in fields:
            first, *rest = fields["event"].split("-")
            schema = {"$ref": pointer("components", "schemas", first + "".join(map(str.capitalize, rest)))}
            Draft202012Validator(schema, registry=registry).validate(json.loads(fields["data"]))


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
    (media_type,) = response["content"]
    headers = {name.lower(): value for name, value in answer.get("headers", {}).items()}
    if headers:
        assert headers["content-type"] == media_type, f"{answer}: another media type than {media_type}"
        for name, header in response.get("headers", {}).items():
            assert name.lower() in headers or not header.get("required"), f"{answer}: without {name}"
    if "asked" in answer:
        asked = operation["requestBody"]["content"]["application/json"]["schema"]
        Draft202012Validator({"$ref": "openapi" + asked["$ref"]}, registry=registry).validate(json.loads(answer["asked"]))
    if media_type == "text/event-stream":
        check_events(answer["body"])
        continue
    schema = {"$ref": pointer(*place, "content", media_type, "schema")}
    Draft202012Validator(schema, registry=registry).validate(json.loads(answer["body"]))
