"""Asks a server on loopback over TLS as Python's ssl does, and prints one line for each way of asking.

Arguments: port, file with the certificate to believe.
"""

import http.client
import socket
import ssl
import sys
import warnings

port, anchors = int(sys.argv[1]), sys.argv[2]
warnings.simplefilter("ignore", DeprecationWarning)


def context(version=None, believing=True, alpn=None):
    made = ssl.create_default_context(cafile=anchors if believing else None)
    if version:
        made.set_ciphers("DEFAULT:@SECLEVEL=0")  # or this side would refuse TLS 1.0 itself
        made.minimum_version = made.maximum_version = version
    if alpn:
        made.set_alpn_protocols(alpn)
    return made


def refusal(made):
    try:
        with socket.create_connection(("127.0.0.1", port)) as plain, made.wrap_socket(plain, server_hostname="localhost"):
            return "accepted"
    except ssl.SSLError as error:
        return error.reason or "refused"  # not every alert has a name in Python


for name in "TLSv1_2", "TLSv1_3":
    connection = http.client.HTTPSConnection("localhost", port, context=context(ssl.TLSVersion[name], alpn=["h2", "http/1.1"]))
    connection.connect()
    said = [connection.sock.version(), connection.sock.selected_alpn_protocol()]
    for body in b"", b"hello", iter([b"in ", b"pieces"]), b"x" * 60_000:
        connection.request("POST", "/", body)
        answer = connection.getresponse()
        said += [str(answer.status), str(len(answer.read()))]
    print(name, *said)
    connection.close()

for name in "TLSv1", "TLSv1_1":
    print(name, refusal(context(ssl.TLSVersion[name])))
print("another authority", refusal(context(believing=False)))
print("only h2", refusal(context(alpn=["h2"])))
print("no protocol", refusal(context()))

# A session that goes on: the ticket of the first connection is taken in the second.
made = context()
session = None
for name in "first", "second":
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with made.wrap_socket(plain, server_hostname="localhost", session=session) as secure:
            secure.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            # An end without close_notify would raise an error here.
            while secure.recv(1000):
                pass
            session = secure.session
            print(name, "reused" if secure.session_reused else "new")
