#!/usr/bin/python3
"""schema.py CONFIG_KEYS: the JSON Schema is one by the official meta-schema, and it and the checker
agree: what the checker accepts the schema accepts, and what the checker refuses for its structure
(unknown or missing key, wrong type) the schema refuses."""
import json
import subprocess
import sys

import jsonschema

STRUCTURE = {"unknown_key", "wrong_type", "missing_key"}
program = sys.argv[1]
schema = json.loads(subprocess.run([program, "schema"], capture_output=True, check=True).stdout)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)

VALUES = [None, True, False, 0, 1, 3, 443, 100000, -1, 1.5, "", " ", "x", "1", "4g", "90s", "deny",
          "allow", "/a", "/a:/b", "a.com", "host", "auto", [], ["x"], ["a.com"], [1], [443], [[]],
          [None], ["ptrace"], ["10.0.0.0/8"], [{}], [{"port": 443}], [{"run": "make"}],
          [{"run": "make", "action": "allow"}], [{"run": "make", "expect": "allow"}],
          [{"host": "/a", "guest": "/b"}], [{"host": "/a", "guest": "/b", "mod": "ro"}], {}, {"x": 1},
          {"A": "x"}, {"A": None}, {"a": ["a.com"]}, {"enabled": False}, {"enabled": True}]


def paths(node, at=()):
    """Every key of the schema that is reached through maps alone."""
    for name, child in node.get("properties", {}).items():
        yield at + (name,)
        yield from paths(child, at + (name,))


def document(path, value):
    for name in reversed(path):
        value = {name: value}
    return value


documents = [{}]
for path in paths(schema):
    documents += [document(path, v) for v in VALUES]
    documents.append(document(path[:-1] + (path[-1] + "x",), 1))
documents += [document(("policy", "commands", "rules"), [{k: v}]) for k in ("run", "action", "scope", "x")
              for v in VALUES]
documents += [document(("mounts",), [{"host": "/a", "guest": "/b", k: v}]) for k in ("host", "mode", "x")
              for v in VALUES]
told = subprocess.run([program, "check"], input="".join(json.dumps(d) + "\n" for d in documents),
                      capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
assert len(told) == len(documents), (len(told), len(documents))
bad = accepted = structural = 0
for d, codes in zip(documents, told):
    codes = set(codes.split())
    valid = validator.is_valid(d)
    if not codes:
        accepted += 1
        if not valid:
            bad += 1
            print(f"accepted, but not by the schema: {json.dumps(d)}")
    elif codes & STRUCTURE:
        structural += 1
        if valid:
            bad += 1
            print(f"refused ({codes}), but not by the schema: {json.dumps(d)}")
print(f"{len(documents)} documents: {accepted} accepted, {structural} refused for their structure, "
      f"{bad} differences")
sys.exit(1 if bad or accepted < 200 or structural < 2000 else 0)
