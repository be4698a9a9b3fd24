"""The signature format by another implementation: Python's json and openssl's Ed25519.

    other.py sign KEY.pem FILE NAME SIGNED_AT [EXPIRES_AT] >>FILE.sig
    other.py verify PUBLIC-HEX FILE.sig
    other.py public KEY.pem"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

DOMAIN = b"sendbox-provenance-signature-v1\0"
SPKI = bytes.fromhex("302a300506032b6570032100")


def canonical(o):
    return json.dumps(o, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def public(pem):
    return subprocess.run(["openssl", "pkey", "-in", pem, "-pubout", "-outform", "DER"], check=True,
                          stdout=subprocess.PIPE).stdout[len(SPKI):]


def openssl(arguments, data):
    with tempfile.TemporaryDirectory() as d:
        for name, content in data.items():
            with open(os.path.join(d, name), "wb") as f:
                f.write(content)
        done = subprocess.run(["openssl", "pkeyutl", "-rawin", *arguments], cwd=d,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.returncode, done.stdout


def sign(pem, path, name, at, expires="0"):
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    o = {"format": "sendbox-provenance", "version": 1, "signature_id": os.environ.get("ID") or os.urandom(16).hex(),
         "subject": {"kind": "artifact", "sha256": digest, "name": name},
         "signer": hashlib.sha256(public(pem)).hexdigest(), "signed_at": int(at), "expires_at": int(expires),
         "metadata": {"by": "another", "ü": "é"}}
    status, signature = openssl(["-sign", "-inkey", os.path.abspath(pem), "-in", "m"],
                                {"m": DOMAIN + canonical(o)})
    assert status == 0 and len(signature) == 64
    o["signature"] = signature.hex()
    sys.stdout.buffer.write(canonical(o) + b"\n")


def verify(key, path):
    with open(path, "rb") as f:
        lines = f.read().splitlines()
    for line in lines:
        o = json.loads(line)
        assert canonical(o) == line
        assert o["signer"] == hashlib.sha256(bytes.fromhex(key)).hexdigest()
        signature = bytes.fromhex(o.pop("signature"))
        status, _ = openssl(["-verify", "-pubin", "-keyform", "DER", "-inkey", "k", "-sigfile", "s", "-in", "m"],
                            {"k": SPKI + bytes.fromhex(key), "s": signature, "m": DOMAIN + canonical(o)})
        print("good" if status == 0 else "bad", o["subject"]["sha256"])


if sys.argv[1] == "public":
    print(public(sys.argv[2]).hex())
else:
    {"sign": sign, "verify": verify}[sys.argv[1]](*sys.argv[2:])
