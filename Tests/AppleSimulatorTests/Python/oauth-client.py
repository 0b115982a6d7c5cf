"""Signs in to an app as Authlib's OAuth 2 client does, knowing nothing of the simulator but what Apple documents.

Arguments: the simulated Apple's address and its issuer, the client, its redirect URI and its team, and the key's ID. The
standard input is the team's private key. Prints the subject, and the words of the last refusal."""
import sys
import time
from urllib.parse import parse_qs, urlsplit

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.integrations.base_client.errors import OAuthError
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

apple, issuer, client, redirect_uri, team, kid = sys.argv[1:]
key = ECKey.import_key(sys.stdin.read())
now = int(time.time())
secret = jwt.encode(
    {"alg": "ES256", "kid": kid},
    {"iss": team, "iat": now, "exp": now + 600, "aud": issuer, "sub": client}, key)
session = OAuth2Session(
    client, secret, scope="openid", redirect_uri=redirect_uri, token_endpoint_auth_method="client_secret_post",
    revocation_endpoint_auth_method="client_secret_post")

# The person, in a browser.
url, state = session.create_authorization_url(f"{apple}/auth/authorize", nonce="a-nonce", response_mode="query")
fields = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
page = requests.get(url, timeout=300)
assert page.status_code == 200, page.text
answer = requests.post(
    f"{apple}/auth/authorize", data=fields | {"decision": "continue", "account": "ada@example.com"},
    headers={"Origin": apple}, allow_redirects=False, timeout=300)
assert answer.status_code in (302, 303), (answer.status_code, answer.text)

# Checks the state by itself.
token = session.fetch_token(
    f"{apple}/auth/token", authorization_response=answer.headers["Location"], state=state, timeout=300)
assert token["token_type"] == "Bearer" and token["expires_in"] == 3600, token

keys = KeySet.import_key_set(requests.get(f"{apple}/auth/keys", timeout=300).json())


def subject(id_token):
    claims = jwt.decode(id_token, keys, algorithms=["RS256"]).claims
    rules = jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": issuer}, aud={"essential": True, "value": client}, sub={"essential": True},
        exp={"essential": True}, iat={"essential": True})
    rules.validate(claims)
    return claims


claims = subject(token["id_token"])
assert claims["nonce"] == "a-nonce", claims
fresh = session.refresh_token(f"{apple}/auth/token", refresh_token=token["refresh_token"], timeout=300)
assert fresh["access_token"] != token["access_token"], "a new one each time"
assert subject(fresh["id_token"])["sub"] == claims["sub"]

revoked = session.revoke_token(
    f"{apple}/auth/revoke", token=token["refresh_token"], token_type_hint="refresh_token", timeout=300)
assert revoked.status_code == 200, revoked.text
try:
    session.refresh_token(f"{apple}/auth/token", refresh_token=token["refresh_token"], timeout=300)
except OAuthError as error:
    print(claims["sub"], error.error)
