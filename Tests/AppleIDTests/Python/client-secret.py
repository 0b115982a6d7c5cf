"""Believes a client secret as Apple would: arguments are the secret, the client and the team, and the standard input is
the team's private key. Prints the key's ID and the secret's lifetime."""
import sys

import jwt

secret, client, team = sys.argv[1:]
key = jwt.get_algorithm_by_name("ES256").prepare_key(sys.stdin.read()).public_key()
claims = jwt.decode(
    secret, key, algorithms=["ES256"], audience="https://appleid.apple.com", issuer=team, subject=client,
    # The moment of the tests is long ago.
    options={"verify_exp": False, "verify_iat": False, "require": ["iss", "iat", "exp", "aud", "sub"]})
if set(claims) != {"iss", "iat", "exp", "aud", "sub"} or claims["exp"] > claims["iat"] + 15777000:
    sys.exit(f"claims that Apple refuses: {claims}")
print(jwt.get_unverified_header(secret)["kid"], claims["exp"] - claims["iat"])
