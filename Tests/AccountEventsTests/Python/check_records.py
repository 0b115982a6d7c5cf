"""Reads records as another implementation does and holds them against schemas/.

Standard input: a JSON array of {topic, key, value, headers: [[name, value], ...]}, bytes as hexadecimal digits.
Standard output: a JSON array of what CloudEvents made of each: {attributes, data}. Exit code 1 and a reason on the
standard error where a record is no CloudEvent, or not what asyncapi.yaml says of its topic.
"""

import json
import pathlib
import sys

import yaml
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary_event
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

schemas = pathlib.Path(__file__).resolve().parents[3] / "schemas"
document = yaml.safe_load((schemas / "asyncapi.yaml").read_text())
registry = Registry().with_resource("asyncapi", Resource(contents=document, specification=DRAFT202012))


def validator(schema):
    return Draft202012Validator(schema, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER)


def message_of(topic):
    """The name of a topic's first message, which is that of its events, and its description."""
    [channel] = [one for one in document["channels"].values() if one["address"] == topic]
    reference = next(iter(channel["messages"].values()))
    name = reference["$ref"].rpartition("/")[2]
    return name, document["components"]["messages"][name]


def check(record):
    headers = {name: bytes.fromhex(value) for name, value in record["headers"]}
    assert len(headers) == len(record["headers"]), "a header stands twice"
    key = bytes.fromhex(record["key"]) if record["key"] is not None else None
    value = bytes.fromhex(record["value"])

    name, message = message_of(record["topic"])
    text = {header: value.decode() for header, value in headers.items()}
    validator({"$ref": f"asyncapi#/components/messages/{name}/headers"}).validate(text)
    payload = json.loads((schemas / message["payload"]["schema"]["$ref"]).read_text())
    Draft202012Validator.check_schema(payload)
    validator(payload).validate(json.loads(value))
    if key is not None:
        validator(message["bindings"]["kafka"]["key"]).validate(key.decode())
        assert headers["ce_partitionkey"] == key, "ce_partitionkey is not the key"

    event = from_binary_event(KafkaMessage(headers=headers, key=key, value=value))
    attributes = {name: str(value) for name, value in event.get_attributes().items() if name != "time"}
    attributes["time"] = str(round(event.get_time().timestamp() * 1000))
    return {"attributes": attributes, "data": event.get_data()}


json.dump([check(record) for record in json.load(sys.stdin)], sys.stdout)
