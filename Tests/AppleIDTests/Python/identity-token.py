"""Issues identity tokens as another implementation makes them: arguments are the issuer, the client, the nonce and when
it is. Prints a JSON object with the issuer's key set, a token, and tokens that nobody may believe, by what is wrong."""
import json
import sys

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

issuer, client, nonce, now = sys.argv[1:]
now = int(now)
key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
jwk = {"kty": "RSA", "kid": "fromPython", "use": "sig", "alg": "RS256", "n": public["n"], "e": public["e"]}
claims = {
    "iss": issuer, "aud": client, "exp": now + 86400, "iat": now, "sub": "000768.6166f031167141e695698239959f591a.1521",
    "nonce": nonce, "nonce_supported": True, "email": "ada@example.com", "email_verified": "true"}


def token(changes=None, key=key, algorithm="RS256", kid="fromPython"):
    return jwt.encode({**claims, **(changes or {})}, key, algorithm=algorithm, headers={"kid": kid})


print(json.dumps({
    "keys": {"keys": [jwk]},
    "token": token(),
    "wrong": {
        "wrong-signature": token(key=stranger), "expired": token({"iat": now - 90000, "exp": now - 3600}),
        "wrong-audience": token({"aud": "com.example.another"}), "wrong-issuer": token({"iss": issuer + ".example"}),
        "wrong-nonce": token({"nonce": nonce + "x"}), "not-yet-valid": token({"iat": now + 3600}),
        "wrong-algorithm": token(key="0123456789abcdef" * 4, algorithm="HS256"),
        "notification": token({"events": "{}", "jti": "a"}),
    },
    # Algorithms of the same key, or of none.
    "other": [
        token(algorithm="RS384"), token(algorithm="PS256"), token(key=None, algorithm="none"),
        token(key=ec.generate_private_key(ec.SECP256R1()), algorithm="ES256")],
}))
