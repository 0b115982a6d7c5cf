#!/usr/bin/env python3
"""Verifies an audit log or a receipt of siwa's, and shares nothing with siwa.

  verify.py log LOG --vkey VKEY         LOG: a bundle (a tar file), or the log's directory
  verify.py receipt FILE --vkey VKEY    FILE: a .tlog-proof

VKEY is the log's first public key, from somebody else than whoever gave you the log. What is verified stands in
docs/audit.md, RFC 6962, and C2SP's signed-note, tlog-checkpoint, tlog-cosignature, tlog-tiles and tlog-proof. Needs
Python 3.9 and, for Ed25519, Debian's python3-cryptography or `pip install cryptography`. Ends with 0 where all holds, 1
where something does not, whose first place is named, 2 for a wrong command line, 3 for what cannot be read.
"""
import argparse, base64, hashlib, json, sys, tarfile
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FULL = 256  # items in a tile or bundle that is not at the right edge

class No(Exception):
    """Something does not hold: what, and where."""

def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def merkle(row):
    """The root over subtrees that stand side by side, all of one height but perhaps the last."""
    while len(row) > 1:
        row = [sha256(b"\1", *row[i : i + 2]) if i + 1 < len(row) else row[i] for i in range(0, len(row), 2)]
    return row[0] if row else sha256()

def unbase64(text, what):
    try:
        data = base64.b64decode(text)
    except ValueError:
        data = b""
    if not data or base64.b64encode(data).decode() != text:
        raise No(f"{what}: no Base64")
    return data

def number(text, what):
    if len(text) > 20 or not (text.isascii() and text.isdigit()) or str(int(text)) != text:
        raise No(f"{what}: {text[:30]!r} is no size or index")
    return int(text)

class Key:
    """A public key under a name (a vkey), of a log (kind 1) or of a witness (kind 4)."""

    def __init__(self, vkey, kind):
        name, identifier, text = (vkey.split("+", 2) + ["", ""])[:3]
        data = unbase64(text, f"key {vkey[:200]!r}")
        if len(data) != 33 or data[0] != kind or sha256(name.encode(), b"\n", data)[:4].hex() != identifier:
            raise No(f"{vkey[:200]!r} is no Ed25519 key of a {'log' if kind == 1 else 'witness'}")
        self.vkey, self.name, self.kind, self.signs_as = vkey, name, kind, (name, bytes.fromhex(identifier))
        self.public = Ed25519PublicKey.from_public_bytes(data[1:])

    def verify(self, signature, text):
        if self.kind == 4:  # behind the time at which the witness saw the checkpoint
            time, signature = int.from_bytes(signature[:8], "big"), signature[8:]
            text = f"cosignature/v1\ntime {time}\n{text}"
        self.public.verify(signature, text.encode())

class Note:
    """A text with signatures below it."""

    def __init__(self, data, place):
        try:
            text, _, lines = data.decode().rpartition("\n\n")
        except UnicodeDecodeError:
            raise No(f"{place}: no UTF-8") from None
        self.place, self.text, self.signatures = place, text + "\n", []
        if not text or not lines.endswith("\n") or any(byte < 0x20 and byte != 0x0A for byte in data):
            raise No(f"{place}: not a text, an empty line and lines of signatures")
        for line in lines[:-1].split("\n"):
            dash, name, signature = (line.split(" ") + ["", ""])[:3]
            signature = unbase64(signature, f"{place}: a signature")
            if dash != "\u2014" or line.count(" ") != 2 or not name or "+" in name:
                raise No(f"{place}: a line that is no signature")
            self.signatures.append(((name, signature[:4]), signature[4:]))

    def signers(self, keys):
        """Which of the keys have signed. A signature under the name and ID of one that is not by it spoils the note."""
        found = [(key, signature) for who, signature in self.signatures for key in keys if key.signs_as == who]
        for key, signature in found:
            try:
                key.verify(signature, self.text)
            except InvalidSignature:
                raise No(f"{self.place}: the signature by {key.vkey} does not verify") from None
        return {key.vkey for key, _ in found}

class Trust:
    """What is known of a log from elsewhere: its first key, which names it, and its witnesses."""

    def __init__(self, vkey, witnesses, quorum):
        self.keys, self.rotations = [Key(vkey, 1)], []
        self.witnesses = [Key(witness, 4) for witness in dict.fromkeys(witnesses)]
        self.quorum = len(self.witnesses) if quorum is None else quorum

    def follow(self, data):
        """Takes in the file `keys`: rotations, each signed by the old key and by the new one."""
        blocks = data[:-1].split(b"\n\n") if data else []
        for text, signatures in zip(blocks[::2], blocks[1::2] + [b""]):
            note, old = Note(b"%s\n\n%s\n" % (text, signatures), "keys"), self.keys[-1]
            lines = note.text.split("\n")
            if len(lines) != 6 or lines[:2] != ["key-rotation/v1", old.name]:
                raise No("keys: no rotation of a key of this log")
            new, tree = Key(lines[4], 1), (number(lines[2], "keys"), unbase64(lines[3], "keys"))
            if new.name != old.name or note.signers([old, new]) != {old.vkey, new.vkey}:
                raise No(f"keys: the rotation to {new.vkey} is not signed by both keys")
            if self.rotations and tree != self.rotations[-1] and tree[0] <= self.rotations[-1][0]:
                raise No(f"keys: the rotation to {new.vkey} lies before the one before it")
            self.rotations.append(tree)
            self.keys.append(new)

    def checkpoint(self, data, place):
        """Size and root of a tree that the log has signed, and as many witnesses as have to."""
        note = Note(data, place)
        origin, size, root = (note.text.split("\n") + ["", ""])[:3]
        if origin != self.keys[0].name:
            raise No(f"{place}: a checkpoint of another log than {self.keys[0].name}")
        tree = number(size, place), unbase64(root, place)
        # A key signs from the tree of one rotation to that of the next; at those trees both keys may have signed.
        sizes = [0, *(size for size, _ in self.rotations), 1 << 64]
        if not note.signers([key for i, key in enumerate(self.keys) if sizes[i] <= tree[0] <= sizes[i + 1]]):
            raise No(f"{place}: not signed by the key of {origin} for a tree of {size}")
        cosigned = len(note.signers(self.witnesses))
        if cosigned < self.quorum:
            raise No(f"{place}: cosigned by {cosigned} witnesses, not by {self.quorum}")
        print(f"{place}: {size} entries, root {root}, cosigned by {cosigned}")
        return tree

class Files:
    """The files of a bundle or of a directory."""

    def __init__(self, path):
        try:
            self.path, self.tar = path, None if path.is_dir() else tarfile.open(path, "r:")
        except tarfile.TarError as reason:
            raise No(f"{path}: {reason}") from None
        self.members = {member.name: member for member in self.tar or []}
        if self.tar and not len(self.tar.getmembers()) == sum(member.isreg() for member in self.members.values()):
            raise No(f"{path}: something that is no file, or a file that stands there twice")

    def get(self, name):
        """The bytes of a file; None where it is not there."""
        if self.tar:
            return self.tar.extractfile(self.members[name]).read() if name in self.members else None
        return (self.path / name).read_bytes() if (self.path / name).is_file() else None

    def items(self, kind, index, width):
        """So many items of a tile (of a level) or of a bundle of entries, and its path."""
        name, rest = f"{index % 1000:03d}", index // 1000
        while rest:
            name, rest = f"x{rest % 1000:03d}/{name}", rest // 1000
        full = f"tile/{kind}/{name}"
        # Where the partial file is gone, the full one begins with what it held.
        for path, count in [(f"{full}.p/{width}", width), (full, FULL)][width == FULL :]:
            data = self.get(path)
            if data is None:
                continue
            items, place, prefix = [], 0, 2 if kind == "entries" else 0
            while place < len(data):
                size = int.from_bytes(data[place : place + prefix], "big") if prefix else 32
                items.append(data[place + prefix : place + prefix + size])
                place += prefix + size
            if len(items) != count or place != len(data):
                raise No(f"{path}: not {count} {'entries' if prefix else 'hashes'}, and nothing else")
            return items[:width], path
        raise No(f"{full}: the file is not there")

def root_of(levels):
    """The root of a tree, from the hashes of each level that no full tile has yet."""
    lower = []
    for hashes in levels:
        lower = [merkle(hashes + lower)] if hashes + lower else []
    return merkle(lower)

def verify_tree(files, size, root, known):
    """Reads every entry and every tile once, from the left to the right. `known` are older trees."""
    for older, other in known:
        if older > size or older == size and other != root:
            raise No(f"checkpoint: not the tree, or not all of it, of {older} entries that the log has shown before")
    levels = [[]]
    def compare(level, index):
        tile, path = files.items(level, index, len(levels[level]))
        for i, hash in enumerate(levels[level]):
            if hash != tile[i]:
                below = f"entry {index * FULL + i}" if level == 0 else f"tile {index * FULL + i} of level {level - 1}"
                raise No(f"{path}: hash {i} is not that of {below}")
    for index in range((size + FULL - 1) // FULL):
        entries, _ = files.items("entries", index, min(size - index * FULL, FULL))
        for count, entry in enumerate(entries, index * FULL + 1):
            levels[0].append(sha256(b"\0", entry))
            for older, other in known:
                if older == count and other != root_of(levels):
                    raise No(f"the first {older} entries are not those of an older checkpoint")
        compare(0, index)
        level = 0
        while len(levels[level]) == FULL:
            if level > 0:
                compare(level, index >> 8 * level)
            levels += [[]] if level + 1 == len(levels) else []
            levels[level + 1].append(merkle(levels[level]))
            levels[level], level = [], level + 1
    for level in range(1, len(levels)):
        if levels[level]:
            compare(level, size >> 8 * (level + 1))
    if root_of(levels) != root:
        raise No("checkpoint: entries and tiles come to another root")

def verify_manifest(files, tree):
    """Compares what a bundle says of itself with its files, and with the checkpoint's tree."""
    data = files.get("manifest.json")
    if data is None:
        return
    try:
        manifest = json.loads(data)
        for name, digest in manifest["files"].items():
            if sha256(files.get(name) or b"").hex() != digest:
                raise No(f"{name}: not the file that manifest.json names")
        if [manifest[key] for key in ("bundle", "origin", "size", "root")] != ["siwa-audit-bundle/v1", *tree]:
            raise No("manifest.json: it says another tree than the checkpoint")
    except (ValueError, LookupError, TypeError, AttributeError) as reason:
        raise No(f"manifest.json: {reason!r}") from None

def verify_log(trust, options):
    files = Files(options.file)
    trust.follow(files.get("keys"))
    size, root = trust.checkpoint(files.get("checkpoint") or b"", "checkpoint")
    verify_manifest(files, [trust.keys[0].name, size, base64.b64encode(root).decode()])
    known = [trust.checkpoint(path.read_bytes(), path) for path in options.since]
    verify_tree(files, size, root, trust.rotations + known)
    return f"All {size} entries hold."

def verify_receipt(trust, options):
    head, _, note = options.file.read_bytes().partition(b"\n\n")
    header, extra, index, *hashes = head.decode().split("\n") + ["", ""]
    if header != "c2sp.org/tlog-proof@v1" or not extra.startswith("extra ") or not index.startswith("index "):
        raise No("not a proof with its entry as extra data")
    trust.follow(options.keys and options.keys.read_bytes())
    entry, index = unbase64(extra[6:], "extra"), number(index[6:], "index")
    size, root = trust.checkpoint(note, "checkpoint")
    for replaced, _ in trust.rotations:
        if size < replaced and not trust.quorum:  # whoever has that key may have made it since
            raise No(f"the key that signed was replaced at {replaced} entries, and no witness vouches for the tree")
    inner, last, hash = index, size - 1, sha256(b"\0", entry)  # fn, sn and r of RFC 9162, section 2.1.3.2
    for sibling in [unbase64(line, "a hash") for line in hashes[:-2]]:
        hash = merkle([sibling, hash] if inner & 1 or inner == last else [hash, sibling]) if last else b""
        while inner == last and inner and not inner & 1:
            inner, last = inner >> 1, last >> 1
        inner, last = inner >> 1, last >> 1
    if index >= size or last != 0 or hash != root:
        raise No(f"the proof does not lead from the entry, as number {index}, to the checkpoint's root")
    return f"Entry {index} of {size} is:\n{json.dumps(json.loads(entry), indent=2)}"

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["log", "receipt"])
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--vkey", required=True, help="the log's first public key")
    parser.add_argument("--witness", action="append", default=[], metavar="VKEY", help="a witness's public key")
    parser.add_argument("--quorum", type=int, help="how many of the witnesses have to have cosigned (all)")
    parser.add_argument("--since", type=Path, action="append", default=[], help="an older checkpoint that was kept")
    parser.add_argument("--keys", type=Path, help="of a receipt: the log's file keys, once its key was rotated")
    options = parser.parse_args()
    try:
        trust = Trust(options.vkey, options.witness, options.quorum)
        print({"log": verify_log, "receipt": verify_receipt}[options.what](trust, options))
    except (No, ValueError, KeyError, tarfile.TarError) as reason:
        sys.exit(print(f"NO: {reason}", file=sys.stderr) or 1)
    except OSError as error:
        sys.exit(print(f"cannot be read: {error}", file=sys.stderr) or 3)

if __name__ == "__main__":
    main()
