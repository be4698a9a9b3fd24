#!/usr/bin/env python3
"""bench_snapshot.py BUILD [FILES MIB ROUNDS] [million]: sendbox-snapshot against git, restic, borg and openssl, on
one tree, in interleaved rounds; what is not installed is left out. "million": memory of a capture of 1,000,000 files.
The rivals: tests/bench/peers-install."""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import ratio, rounds, run, say  # noqa: E402

words = [w for w in sys.argv[2:] if w != "million"]
helper = os.path.abspath(sys.argv[1]) + "/host/snapshot/sendbox-snapshot"
files, mib, n = (int(w) for w in (words + ["20000", "500", "5"][len(words):])[:3])
top = tempfile.mkdtemp(prefix="snapbench.", dir="/var/tmp")
tree = top + "/tree"
os.environ.update(GIT_DIR=top + "/git", GIT_WORK_TREE=tree, HOME=top, RESTIC_PASSWORD="x", RESTIC_REPOSITORY=top + "/restic",
                  BORG_REPO=top + "/borg", BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK="yes", GIT_CONFIG_NOSYSTEM="1")


def plant(count, average):
    blob = random.Random(1).randbytes(1 << 22)
    rnd = random.Random(2)
    for i in range(count):
        folder = "%s/d%d/s%d" % (tree, i // 1000, i // 50 % 20)
        if i % 50 == 0:
            os.makedirs(folder, exist_ok=True)
        with open("%s/f%d" % (folder, i), "wb") as f:
            f.write(b"%d\n" % i)
            left = int(rnd.expovariate(1 / average)) if average else 0
            while left > 0:
                at = rnd.randrange(len(blob))
                f.write(blob[at:at + left])
                left -= len(blob) - at


def snap(*args):
    return ["sh", "-c", 'exec "$0" "$@" 3<%s/store 5<%s' % (top, tree), helper, args[0], "--path", tree, *args[1:]]


def fresh(name, *prepare):
    shutil.rmtree(top + "/" + name, ignore_errors=True)
    if not prepare:
        os.mkdir(top + "/" + name)
    for argv in prepare:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def first(name, argv, *prepare):
    def way():
        fresh(name, *prepare)
        return run(argv)
    return way


def capture_id():
    return subprocess.run(snap("create"), check=True, capture_output=True, text=True).stdout.strip()


def change(k):
    for i in range(2000):
        j = i * (files // 2000)
        with open("%s/d%d/s%d/f%d" % (tree, j // 1000, j // 50 % 20, j), "ab") as f:
            f.write(b"changed %d\n" % k)


def restore_way():
    change(1)
    return run(snap("restore", "--from", before))


def checkout_way():
    change(2)
    subprocess.run(["git", "status"], check=True, stdout=subprocess.DEVNULL)
    return run(["git", "checkout", "-q", "-f", "--", "."])


try:
    if "million" in sys.argv:
        plant(1000000, 0)
        fresh("store")
        out = subprocess.run(["/usr/bin/env", "python3", "-c", "import os, resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", *snap("create")],
                             check=True, capture_output=True, text=True).stdout
        say(bench="snapshot memory, 1,000,000 files", unit="MiB", value=round(int(re.search(r"\d+", out)[0]) / 1024), bar=300)
        sys.exit(0)
    plant(files, (mib << 20) // files)
    ways = {"openssl": lambda: run(["sh", "-c", "find %s -type f -print0 | xargs -0 openssl dgst -sha256" % tree]),
            "sendbox": first("store", snap("create")),
            "git": first("git", ["sh", "-c", "git add -A && git write-tree"], ["git", "init", "-q"])}
    if shutil.which("restic"):
        ways["restic"] = first("restic", ["restic", "backup", "-q", tree], ["restic", "init", "-q"])
    if shutil.which("borg"):
        ways["borg"] = first("borg", ["borg", "create", "::a", tree], ["borg", "init", "-e", "none"])
    got = rounds("snapshot, first capture", ways, n)
    ratio("snapshot, first capture", got, "sendbox", "openssl", 1.3)
    for name in ways:
        if name not in ("sendbox", "openssl"):
            ratio("snapshot, first capture", got, "sendbox", name, 1)
    subprocess.run(["git", "status"], check=True, stdout=subprocess.DEVNULL)
    got = rounds("snapshot, nothing changed", {"sendbox": lambda: run(snap("create")), "git": lambda: run(["git", "status"])}, 4 * n)
    ratio("snapshot, nothing changed", got, "sendbox", "git", 1.5)
    before = capture_id()
    got = rounds("snapshot, 2,000 files put back", {"sendbox": restore_way, "git": checkout_way}, n)
    ratio("snapshot, 2,000 files put back", got, "sendbox", "git", 1)
finally:
    shutil.rmtree(top)
