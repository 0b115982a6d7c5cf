"""Holds schemas/asyncapi.yaml against the JSON Schema of AsyncAPI documents, whose path is the only argument."""

import json
import pathlib
import sys

import yaml
from jsonschema.validators import validator_for

schemas = pathlib.Path(__file__).resolve().parents[3] / "schemas"
meta = json.loads(pathlib.Path(sys.argv[1]).read_text())
validator_for(meta)(meta).validate(yaml.safe_load((schemas / "asyncapi.yaml").read_text()))
