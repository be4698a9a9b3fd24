#!/usr/bin/env python3
"""bench_exec_tree.py BUILD [namespace|microvm ...]: what a command policy for the process tree costs an
execve: the median time of vfork, execve and the end of a static program inside the sandbox, without a
policy and with one of SCOPE tree and 100 rules, interleaved. One JSON line each."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
providers = sys.argv[2:] or ["namespace", "microvm"]
sendbox = build + "/host/cli/sendbox"
work = tempfile.mkdtemp(prefix="sbexec.", dir="/var/tmp")
shutil.copy(build + "/tests/bench/exec_load", work + "/exec_load")
RULES = "".join("      - tool%d --option **\n" % i for i in range(100))
POLICY = {
    "none": "runtime:\n  provider: %s\n",
    "tree": "runtime:\n  provider: %s\npolicy:\n  commands:\n    default_action: allow\n    denylist:\n" + RULES,
}


def run(provider, scope, n):
    with open(work + "/.sendbox.yaml", "w", encoding="utf-8") as f:
        f.write(POLICY[scope] % provider)
    accel = ["--accel", os.environ.get("SENDBOX_ACCEL", "tcg")] if provider == "microvm" else []
    out = subprocess.run([sendbox, "run", "--trust-config", *accel, "--", work + "/exec_load", str(n)],
                         cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=200)
    if out.returncode != 0:
        sys.exit("%s %s: %s" % (provider, scope, out.stderr.decode()))
    return int(out.stdout)


try:
    for p in providers:
        rounds = 7 if p == "namespace" else 3
        times = {"none": [], "tree": []}
        for _ in range(rounds):
            for s, t in times.items():
                t.append(run(p, s, 2000 if p == "namespace" else 300))
        none, tree = (statistics.median(times[s]) for s in ("none", "tree"))
        print(json.dumps({"bench": "exec_tree", "runtime": p, "none_us": none / 1000, "tree_us": tree / 1000,
                          "added_us": (tree - none) / 1000, "factor": round(tree / none, 2), "rounds": rounds}))
finally:
    shutil.rmtree(work)
