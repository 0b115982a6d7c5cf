"""Signs somebody in with Apple by way of siwa-accounts, with nothing but Python's own library.

`begin` belongs where your pages link to "Sign in with Apple", `finish` where Apple's page posts its form to.
"""

import hmac, http.client, json, os, secrets, sys, time, urllib.error, urllib.parse, urllib.request

ACCOUNTS, TOKEN = os.environ["ACCOUNTS_URL"], os.environ["ACCOUNTS_TOKEN"]
CLIENT, REDIRECT = os.environ["CLIENT_ID"], os.environ["REDIRECT_URI"]
APPLE = os.environ.get("APPLE_AUTHORIZE", "https://appleid.apple.com/auth/authorize")


def begin():
    """Where to send the browser, and what to keep in its session: in a cookie SameSite=None; Secure."""
    session = {"state": secrets.token_urlsafe(32), "nonce": secrets.token_urlsafe(32), "key": secrets.token_urlsafe(32)}
    query = {"client_id": CLIENT, "redirect_uri": REDIRECT, "response_type": "code id_token",
             "response_mode": "form_post", "scope": "name email", "state": session["state"], "nonce": session["nonce"]}
    return APPLE + "?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote), session


def finish(session, body):
    """Who has signed in, by the form that Apple's page has posted; None where they have to begin again."""
    form = {name: values[0] for name, values in urllib.parse.parse_qs(body).items()}
    if not hmac.compare_digest(form.get("state", "").encode(), session["state"].encode()):
        raise PermissionError("not a sign-in that this browser has begun")
    if "error" in form:
        return None  # the person has cancelled
    if "user" in form:
        pass  # the name, once and never again: store it now, under the session's key
    return sign_in(session["key"], {
        "identityToken": form["id_token"], "authorizationCode": form["code"], "nonce": session["nonce"],
        "clientId": CLIENT, "redirectUri": REDIRECT})


def sign_in(key, request):
    """`key` is the sign-in's own, and the same whenever this one is repeated."""
    wait, end = 0, time.monotonic() + 300  # a code is good for five minutes
    for _ in range(5):
        if time.monotonic() + wait > end:
            return None  # the code would be too old
        time.sleep(wait)
        call = urllib.request.Request(f"{ACCOUNTS}/v1/sign-ins", json.dumps(request).encode(), {
            "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Idempotency-Key": key})
        try:
            with urllib.request.urlopen(call, timeout=70) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (429, 503):
                wait = int(error.headers.get("Retry-After", 5))
                continue
            problem = json.load(error)  # RFC 9457: type, title, status, detail
            if problem["type"] == "urn:siwa:problem:begin-again":
                return None  # send the person to Apple once more
            raise PermissionError(problem["detail"]) from error
        except (OSError, http.client.HTTPException):
            wait = 1  # the connection was lost, and the answer with it: the same request gets the same one
    raise ConnectionError("siwa-accounts does not answer")


address, session = begin()
print(address, flush=True)
person = finish(session, sys.stdin.readline().strip())
print(person["account"]["id"] if person else "begin again")
