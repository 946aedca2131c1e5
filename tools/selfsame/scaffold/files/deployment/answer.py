#!/usr/bin/env python3
"""A runtime of identity-runtime.v1 in another language than Selfsame's own."""

import hashlib
import json
import os
import sys


def canonical(value):
    # All strings and small integers: this is RFC 8785 for them.
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def statements(view, asks):
    for ask in asks:
        if ask == "constitution":
            source = [{"path": view["constitution"]["path"], "sha256": view["constitution"]["sha256"]}]
            some = [("rule", r["id"], r["text"], source, r) for r in view["rules"]]
        else:
            some = [("row", r["table"] + "/" + r["row"], r["statement"], r["evidence"], r) for r in view["rows"]]
        for kind, ref, text, evidence, origin in sorted(some, key=lambda s: (s[4]["rank"], s[1])):
            yield {"kind": kind, "ref": ref, "rank": origin["rank"], "text": text, "sha256": origin["sha256"], "evidence": evidence}


def main():
    query = json.load(sys.stdin)["query"]
    files = {}
    for name in ["SOUL.md", "config.yaml", "identity.json"]:
        with open(os.path.join(os.environ["HERMES_HOME"], name), "rb") as file:
            files[name] = file.read()
    view = json.loads(files["identity.json"])
    sys.stdout.buffer.write(canonical({
        "format": "identity-runtime.v1",
        "agent": view["agent"],
        "label": view["label"],
        "query_id": query["query_id"],
        "query_sha256": digest(canonical(query)),
        "statements": list(statements(view, query["asks"])),
        "inputs": [{"path": name, "sha256": digest(data)} for name, data in sorted(files.items())],
    }))


main()
