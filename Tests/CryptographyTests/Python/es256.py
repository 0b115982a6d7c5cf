"""Verifies an ES256 signature of "a message" (argument: base64url of r and s) with the private key on the standard input,
then prints the key's point and a signature of its own."""
import base64
import json
import sys

import jwt

algorithm = jwt.get_algorithm_by_name("ES256")
key = algorithm.prepare_key(sys.stdin.read())
signature = base64.urlsafe_b64decode(sys.argv[1] + "==")
if not algorithm.verify(b"a message", key.public_key(), signature):
    sys.exit("the signature is not the key's")
point = json.loads(algorithm.to_jwk(key.public_key()))
print(point["x"])
print(point["y"])
print(base64.urlsafe_b64encode(algorithm.sign(b"a message", key)).decode().rstrip("="))
