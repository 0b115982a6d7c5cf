"""A service that erases on request, as another implementation of Standard Webhooks has it.

Argument: the secret. Standard output: the port, then a line of JSON for each order that was signed rightly. The last
part of the request's path says how it answers.
"""

import base64
import datetime
import http.server
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(sys.argv[1])
other = Webhook("whsec_" + base64.b64encode(bytes(32)).decode())


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            order = webhook.verify(body, dict(self.headers.items()))
        except WebhookVerificationError as error:
            return self.reply(401, str(error).encode(), {})
        identifier = self.headers["webhook-id"]
        print(json.dumps({"path": self.path, "id": identifier, "order": order}), flush=True)
        now = datetime.datetime.now(datetime.timezone.utc)
        status, answer, signer = 200, {"state": "erased", "affected": 3, "found": 0}, webhook
        kind, _, pause = self.path.rpartition("/")[2].partition("-after-")
        wanted = {"retry-after": pause} if pause else {}
        match kind:
            case "unsigned":
                return self.reply(status, json.dumps(answer).encode(), {})
            case "other-secret":
                signer = other
            case "other-id":
                identifier += "x"
            case "an-hour-ago":
                now -= datetime.timedelta(hours=1)
            case "in-progress":
                status, answer = 202, {"state": "in-progress"}
            case "something-left":
                answer["found"] = 2
            case "too-much-said":
                answer["name"] = "Ada"
            case "not-now":
                return self.reply(503, b"", wanted)
            case "gateway":
                return self.reply(504, b"", wanted)
            case "conflict":
                return self.reply(409, b"", wanted)
            case "never":
                return self.reply(410, b"", {})
        text = json.dumps(answer)
        self.reply(status, text.encode(), wanted | {
            "webhook-id": identifier,
            "webhook-timestamp": str(int(now.timestamp())),
            # Beside one of a scheme that nobody here knows.
            "webhook-signature": "v1a,AAAA " + signer.sign(identifier, now, text),
        })

    def reply(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(server.server_port, flush=True)
server.serve_forever()
