#!/usr/bin/env python3
"""bench_instances.py BUILD [ROUNDS [MIB]] [namespace|microvm|idle ...]: what an environment of 2 GiB costs.

  namespace, microvm  `run AGENT` from exec to exit: without an environment, with a small one, with one of 2 GiB,
                      each a new instance, one resumed, and one that is not kept (--rm); and a bare `-- PROGRAM`.
                      Then the bytes on disk that the new instances took.
  idle                three instances of the large environment that have read all of it and wait: what of the layer
                      is in the host's memory, and what each of them holds for itself
Root only."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import measure

build = os.path.abspath(sys.argv[1])
numbers = [int(a) for a in sys.argv[2:] if a.isdigit()]
parts = [a for a in sys.argv[2:] if not a.isdigit()] or ["namespace", "microvm", "idle"]
n = numbers[0] if numbers else 7
mib = numbers[1] if len(numbers) > 1 else 2048
sendbox = build + "/host/cli/sendbox"
env = dict(os.environ)


def agent(home, name, commands):
    with open("%s/config/agents/%s.json" % (home, name), "w", encoding="utf-8") as f:
        json.dump({"displayName": name, "baseImage": "host", "installCommands": commands,
                   "packageGroups": ["npm"], "launchCommand": ["true"]}, f)


def setup(home):
    cache = os.environ.get("SENDBOX_HOME", "") + "/cache" if os.environ.get("SENDBOX_HOME") else \
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/sendbox"
    for d in ("", "/config", "/config/agents", "/cache"):
        os.mkdir(home + d, 0o700)
    for d in (cache + "/kernels", "/usr/lib/sendbox/kernels"):
        if os.path.isdir(d):
            os.symlink(d, home + "/cache/kernels")
            break
    env["SENDBOX_HOME"] = home
    agent(home, "none", [])
    agent(home, "small", ["mkdir -p /opt; echo small >/opt/made"])
    agent(home, "large", ["mkdir -p /opt/e; head -c %dM /dev/urandom | split -b 1M -a 4 - /opt/e/f" % mib])
    for name in ("small", "large"): # in namespaces: an environment is the same for both
        subprocess.run([sendbox, "run", "--runtime", "namespace", "--rm", name], env=env, check=True,
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def options(runtime):
    return ["--runtime", runtime] + (["--accel", "tcg", "--memory", "512m"] if runtime == "microvm" else [])


def disk(home):
    """Bytes that files have on disk: the cache, the instances."""
    out = subprocess.run(["du", "-s", "-B1", home + "/cache/layers", home + "/state"], check=True, capture_output=True,
                         text=True).stdout
    return [int(line.split()[0]) for line in out.splitlines()]


def times(home, runtime):
    made = []

    def start(name, *more):
        return measure.run([sendbox, "run", *options(runtime), *more, name], env)

    def create(name):
        made.append("%s-%d" % (name, len(made)))
        return start(name, "--name", made[-1])
    ways = {"bare": lambda: measure.run([sendbox, "run", *options(runtime), "--", "true"], env)}
    for name in ("none", "small", "large"):
        if name != "large":
            ways[name + " --rm"] = lambda name=name: start(name, "--rm")
        ways[name + " new"] = lambda name=name: create(name)
        start(name, "--name", "again-" + name)
        ways[name + " resumed"] = lambda name=name: start(name, "--name", "again-" + name)
    before = disk(home)
    got = measure.rounds(runtime, ways, n)
    after = disk(home)
    for how in ("new", "resumed"):
        measure.difference(runtime, got, "large " + how, "none " + how, 20)
        measure.difference(runtime, got, "large " + how, "small " + how)
    measure.ratio(runtime, got, "small --rm", "bare", 1.1)
    measure.ratio(runtime, got, "none --rm", "bare")
    measure.say(bench=runtime, name="bytes on disk that an instance takes", instances=len(made),
                layers=after[0] - before[0], each=(after[1] - before[1]) // len(made))
    for name in made + ["again-" + name for name in ("none", "small", "large")]:
        subprocess.run([sendbox, "rm", name], env=env, check=True, stdout=subprocess.DEVNULL)


def processes(name, layer):
    """Of every process called @name that has @layer open or mapped: MiB mapped, its share of them, its own."""
    got = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        at = "/proc/" + pid
        try:
            with open(at + "/comm", encoding="utf-8") as f:
                if f.read().strip() != name[:15]:
                    continue
            with open(at + "/maps", encoding="utf-8") as f:
                has = layer in f.read()
            has = has or layer in (os.readlink("%s/fd/%s" % (at, fd)) for fd in os.listdir(at + "/fd"))
            with open(at + "/smaps_rollup", encoding="utf-8") as f:
                rows = dict(line.split(":", 1) for line in f.read().splitlines()[1:])
        except OSError:
            continue
        mib = {k: int(v.split()[0]) >> 10 for k, v in rows.items() if v.endswith("kB")}
        if has:
            got.append((mib["Rss"], mib["Pss"], mib["Private_Clean"] + mib["Private_Dirty"]))
    return got


def idle(home, runtime):
    layer = max((os.path.join(home, "cache/layers", f) for f in os.listdir(home + "/cache/layers")), key=os.path.getsize)
    server = "sendbox-imgfs" if runtime == "namespace" else "qemu-system-x86_64"
    with open("/proc/sys/vm/drop_caches", "w", encoding="utf-8") as f:
        f.write("1")

    def cached():
        out = subprocess.run(["fincore", "-b", "-n", "-o", "RES", layer], check=True, capture_output=True, text=True)
        return int(out.stdout) >> 20
    measure.say(bench="idle " + runtime, layer_mib=os.path.getsize(layer) >> 20, cached_mib_before=cached())
    for i in range(3):
        # the definition's install commands are unchanged: so is the environment
        subprocess.run([sendbox, "run", *options(runtime), "--detach", "--name", "idle%d" % i, "large-idle"], env=env,
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        subprocess.run([sendbox, "exec", "idle%d" % i, "--", "sh", "-c", "cat /opt/e/* >/dev/null"], env=env, check=True)
        time.sleep(1)
        ours = processes(server, layer)
        measure.say(bench="idle " + runtime, instances=i + 1, cached_mib=cached(), server=server,
                    rss_mib=[p[0] for p in ours], pss_mib=[p[1] for p in ours], private_mib=[p[2] for p in ours])
    for i in range(3):
        subprocess.run([sendbox, "stop", "idle%d" % i], env=env, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([sendbox, "rm", "idle%d" % i], env=env, check=True, stdout=subprocess.DEVNULL)


def main():
    with tempfile.TemporaryDirectory(prefix="sb-bench-", dir="/var/tmp") as work:
        home = work + "/home"
        os.mkdir(work + "/project")
        os.chdir(work + "/project")
        setup(home)
        for runtime in ("namespace", "microvm"):
            if runtime in parts:
                times(home, runtime)
        with open(home + "/config/agents/large.json", encoding="utf-8") as f:
            d = json.load(f)
        d["launchCommand"] = ["sleep", "600"]
        with open(home + "/config/agents/large-idle.json", "w", encoding="utf-8") as f:
            json.dump(d, f)
        for runtime in ("namespace", "microvm"):
            if "idle" in parts:
                idle(home, runtime)
        shutil.rmtree(home)


main()
