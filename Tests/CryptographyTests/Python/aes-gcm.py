"""Opens what others sealed and seals for others, with AES-256-GCM as the package `cryptography` has it.

A line of the input: key, place and sealed value in hexadecimal digits, separated by commas. A line of the output: what
was in it, and the same sealed anew.
"""

import os
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

for line in sys.stdin:
    key, place, sealed = (bytes.fromhex(word) for word in line.rstrip("\n").split(","))
    plaintext = AESGCM(key).decrypt(sealed[:12], sealed[12:], place)
    nonce = os.urandom(12)
    print(f"{plaintext.hex()},{(nonce + AESGCM(key).encrypt(nonce, plaintext, place)).hex()}")
