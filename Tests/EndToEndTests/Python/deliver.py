"""Delivers a notification as Apple does: deliver.py PORT CAFILE BODYFILE TLSVERSION. Prints version and status."""
import http.client
import ssl
import sys

port, ca_file, body_file, version = sys.argv[1:]
context = ssl.create_default_context(cafile=ca_file)
context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
if version in ("TLSv1", "TLSv1_1"):
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # so that it is the server who refuses
connection = http.client.HTTPSConnection("localhost", int(port), context=context, timeout=300)
try:
    connection.connect()
except ssl.SSLError as error:
    sys.exit(f"refused: {error.reason}")
connection.request("POST", "/apple/notifications", open(body_file, "rb"), {"Content-Type": "application/json"})
print(connection.sock.version(), connection.getresponse().status)
