"""Reads requests as h11 and llhttp (within aiohttp) do, and says where they read something else than we.

Each line of the input is one connection: {"input": its bytes in hexadecimal, "messages": what we accepted of it, each
with the offset of its end}. All text stands for bytes, one character each. Each line of the output is a difference.

A reader that refuses what we accept differs too, but for what is listed in `REFUSED`.
"""
import asyncio
import collections
import json
import re
import sys

import h11
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import SINGLETON_HEADERS, HttpRequestParser
from aiohttp.streams import EMPTY_PAYLOAD

# Where aiohttp's compiled reader is missing, one in Python stands in: that would be no llhttp.
assert HttpRequestParser.__module__ == "aiohttp._http_parser"

ROOM = 1 << 20
LOOP = asyncio.new_event_loop()

# What llhttp or aiohttp refuses though RFC 9112 allows it, so that the refusal says nothing about us.
METHODS = set(
    "DELETE GET HEAD POST PUT CONNECT OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK BIND REBIND "
    "UNBIND ACL REPORT MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PATCH PURGE MKCALENDAR LINK "
    "UNLINK SOURCE QUERY".split())
REFUSED = {
    "a method that is not on its list": lambda message, request: message["method"] not in METHODS,
    "a tab behind the transfer coding": lambda message, request: b"chunked\t" in request.lower(),
    "twice what aiohttp wants once": lambda message, request: any(
        count > 1 and name.decode("latin-1") in SINGLETON_HEADERS
        for name, count in collections.Counter(re.findall(rb"\r\n([^:\r\n]+):", request.lower())).items()),
}


def text(data):
    return bytes(data).decode("latin-1")


class Refusal(Exception):
    """There is no request in these bytes, or not exactly one."""


class H11:
    """A connection as h11 reads it."""

    def __init__(self):
        self.connection = h11.Connection(h11.SERVER, max_incomplete_event_size=ROOM)

    def read(self, data):
        """The one request in these bytes."""
        connection, request, body = self.connection, None, b""
        try:
            connection.receive_data(data)
            while type(event := connection.next_event()) is not h11.EndOfMessage:
                if isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    raise Refusal(f"not complete: {event}")
        except h11.RemoteProtocolError as error:
            raise Refusal(str(error)) from error
        if connection.trailing_data[0]:
            raise Refusal(f"complete before {connection.trailing_data[0]!r}")
        # It may answer only once per request, and goes on only after it.
        connection.send(h11.Response(status_code=404, headers=[("Content-Length", "0")]))
        connection.send(h11.EndOfMessage())
        read = {
            "method": text(request.method),
            "target": text(request.target),
            "version": text(request.http_version),
            "fields": [[text(name), text(value)] for name, value in request.headers.raw_items()],
            "body": text(body),
        }
        closes = connection.our_state is h11.MUST_CLOSE
        if request.http_version == b"1.1":  # it ends all others, whatever they say
            read["closes"] = closes
        if closes:
            self.__init__()
        else:
            connection.start_next_cycle()
        return read

    @staticmethod
    def expected(message):
        """Our reading, in h11's words: it writes the transfer coding in small letters."""
        fields = [
            [name, value.lower() if name.lower() == "transfer-encoding" else value] for name, value in message["fields"]]
        return message | {"fields": fields}


class LLHTTP:
    """A connection as llhttp reads it."""

    def __init__(self):
        self.parser = HttpRequestParser(
            BaseProtocol(LOOP), LOOP, ROOM, max_line_size=ROOM, max_headers=ROOM, max_field_size=ROOM,
            auto_decompress=False)

    def read(self, data):
        """The one request in these bytes."""
        try:
            messages, upgraded, tail = self.parser.feed_data(data)
        except HttpProcessingError as error:
            raise Refusal(f"{type(error).__name__}: {error.message}") from error
        if len(messages) != 1:
            raise Refusal(f"{len(messages)} requests")
        [(message, payload)] = messages
        if payload.exception() is not None:
            raise Refusal(str(payload.exception()))
        if payload is not EMPTY_PAYLOAD and not payload._eof:
            raise Refusal("the body goes on")
        if tail:
            raise Refusal(f"complete before {tail!r}")
        # Whoever upgrades or closes speaks no more HTTP here. And aiohttp would give trailers to the next request.
        if upgraded or message.should_close or message.chunked:
            self.__init__()
        return {
            "method": message.method,
            "target": text(message.path.encode("utf-8", "surrogateescape")),
            "path": message.url.raw_path,
            "query": message.url.raw_query_string,
            "version": f"{message.version.major}.{message.version.minor}",
            "fields": [[text(name), text(value)] for name, value in message.raw_headers],
            "body": text(payload.read_nowait(-1)),
        }

    @staticmethod
    def expected(message):
        """Our reading, in llhttp's words, which are the same."""
        return message


for line in sys.stdin:
    connection = json.loads(line)
    data = bytes.fromhex(connection["input"])
    readers = [H11(), LLHTTP()]
    start = 0
    for message in connection["messages"]:
        request = data[start:message["end"]]
        start = message["end"]
        for reader in list(readers):
            try:
                theirs = reader.read(request)
            except Refusal as refusal:
                readers.remove(reader)
                if isinstance(reader, LLHTTP) and any(applies(message, request) for applies in REFUSED.values()):
                    continue
                theirs, ours = str(refusal), "accepted"
            else:
                ours = {key: reader.expected(message)[key] for key in theirs}
            if theirs != ours:
                print(json.dumps({
                    "request": text(request), "reader": type(reader).__name__, "theirs": theirs, "ours": ours}))
