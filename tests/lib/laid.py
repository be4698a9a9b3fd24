#!/usr/bin/env python3
"""laid.py SENDBOX HOME PLAN.out CHANGES.json -- OPTIONS -- COMMAND...

A signed plan of this host that says more than the command line can: the plan of `run --dry-run OPTIONS --
COMMAND` with CHANGES merged in, signed with the host's own key. What follows from the changes (the
initramfs, features) is taken from what `run --plan` names as different; so the changes themselves must
be ones that a plan may have.

CHANGES: keys of the plan. "layers": paths become whole entries; "upper": a path of a file or folder;
"builder" and "task": what they imply, too.
"""
import hashlib
import json
import os
import re
import subprocess
import sys

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/plan/golden.py")


def canonical(o):
    return json.dumps(o, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def layer(path):
    st = os.lstat(path)
    with open(path, "rb") as f:
        sha = hashlib.sha256(f.read())
    return {"path": path, "sha256": sha.hexdigest(), "dev": st.st_dev, "ino": st.st_ino,
            "size": st.st_size, "ctime_ns": st.st_ctime_ns}


def alone(plan, home, user):
    """Without the user's folders, which a builder and an export have not."""
    plan.update(mounts=[], guards=[], cwd=home, home=home, user=user)
    values = {"HOME": home, "USER": user, "LOGNAME": user, "PWD": home}
    for e in plan["env"]:
        if e["name"] in values:
            e["sha256"] = hashlib.sha256(values[e["name"]].encode()).hexdigest()


def change(plan, changes):
    if changes.get("builder"):
        plan.update(uid=0, gid=0)
        alone(plan, "/root", "root")
    if changes.get("task") == "export":
        alone(plan, "/home/" + plan["user"], plan["user"])
    for key, value in changes.items():
        if key == "layers":
            value = [v if isinstance(v, dict) else layer(v) for v in value]
        if key == "upper" and isinstance(value, str):
            st = os.lstat(value)
            value = {"kind": "dir" if os.path.isdir(value) else "disk", "path": value,
                     "dev": st.st_dev, "ino": st.st_ino}
        plan[key] = value


def put(plan, path, value):
    m = re.fullmatch(r"(\w+)\[(.*)\]\.(\w+)", path)
    if m:
        for e in plan[m[1]]:
            if m[2] in (e.get("name"), e.get("role"), e.get("path")):
                e[m[3]] = value
    elif "." in path:
        a, b = path.split(".", 1)
        plan[a][b] = value
    else:
        plan[path] = value


def write(home, plan, out):
    with open(out + ".bare", "w", encoding="utf-8") as f:
        f.write(canonical(plan))
    with open(out, "wb") as f:
        subprocess.run([sys.executable, GOLDEN, "sign", out + ".bare",
                        os.path.join(home, "state/keys/host.ed25519")], check=True, stdout=f)


def main():
    sendbox, home, out, changes = sys.argv[1:5]
    rest = sys.argv[6:]
    cut = rest.index("--")
    options, command = rest[:cut], rest[cut + 1:]
    raw = subprocess.run([sendbox, "run", "--dry-run", "--valid-for", "10m", *options, "--", *command],
                         check=True, stdout=subprocess.PIPE).stdout
    plan = json.loads(json.loads(raw)["plan"])
    with open(changes, encoding="utf-8") as f:
        change(plan, json.load(f))
    write(home, dict(plan, host_version="0"), out)  # so that it is told, and not run
    said = subprocess.run([sendbox, "run", "--plan", out], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    for m in re.finditer(r"plan: (\S+): there (.*), here (.*)$", said, re.M):
        put(plan, m[1], json.loads(m[3]))
    write(home, plan, out)
    return 0


sys.exit(main())
