"""A server that speaks one version of TLS and nothing else, however old: one-version.py CERTIFICATE KEY VERSION.

Prints its port, answers one connection, and ends.
"""
import socket
import ssl
import sys

certificate, key, version = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
context.set_ciphers("ALL:@SECLEVEL=0")
# Below 1.2 both are deprecated, which is the point.
context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    try:
        with context.wrap_socket(connection, server_side=True) as peer:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    except OSError:
        pass  # what the client refuses is its own to report
