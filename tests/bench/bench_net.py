#!/usr/bin/env python3
"""bench_net.py BUILD [big|small|rate|memory|microvm ...]: the net gate, one JSON line each.

The server is on the host's loopback and is granted by --allow-host-port; what is compared runs in
the same interleaved rounds against the same server. Rivals that are installed join in: tinyproxy,
squid, microsocks on this machine, srt and codex below $PEERS (tests/bench/peers-install)."""
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1])
parts = sys.argv[2:] or ["big", "small", "rate", "memory", "microvm"]
sendbox = build + "/host/cli/sendbox"
tool = build + "/tests/bench/net_load"
peers = os.environ.get("PEERS", "/tmp/sbpeers")
PORT, RELAY, TINY, SQUID, SOCKS = 18480, 18481, 18482, 18483, 18484
BIG = 1 << 30
work = tempfile.mkdtemp(prefix="sbnet.", dir="/var/tmp")
os.chmod(work, 0o755)
shutil.copy(tool, work + "/net_load")
os.chmod(work + "/net_load", 0o755)
started = []
signal.signal(signal.SIGTERM, lambda *a: sys.exit(1))  # the servers are ended then, too


def put(**k):
    print(json.dumps(k), flush=True)


def bg(*argv):
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    started.append(p)
    return p


def box(*argv, runtime="namespace", more=()):
    extra = ["--accel", os.environ.get("SENDBOX_ACCEL", "tcg"), "--memory", "1G"] if runtime == "microvm" else []
    return [sendbox, "run", "--runtime", runtime, *extra, "--project", work, "--allow-host-port", str(PORT), *more, "--", *argv]


def lines(argv, **k):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=work, timeout=300, check=True, **k)
    return [float(x) for x in r.stdout.split()]


def proxies():
    """name -> proxy argument of net_load, for what is installed"""
    found = {}
    if shutil.which("tinyproxy"):
        with open(work + "/tiny", "w", encoding="utf-8") as f:
            f.write("Port %d\nListen 127.0.0.1\nTimeout 60\nAllow 127.0.0.1\nLogLevel Critical\nMaxClients 200\nConnectPort %d\n" % (TINY, PORT))
        bg("tinyproxy", "-d", "-c", work + "/tiny")
        found["tinyproxy"] = "connect:%d" % TINY
    if shutil.which("squid"):
        with open(work + "/squid", "w", encoding="utf-8") as f:
            f.write("http_port 127.0.0.1:%d\nacl ok dst 127.0.0.1\nhttp_access allow ok\nhttp_access deny all\ncache deny all\n"
                    "access_log none\ncache_log %s/sq/log\npid_filename none\ncoredump_dir %s/sq\nshutdown_lifetime 0 seconds\n"
                    "netdb_filename none\npinger_enable off\n" % (SQUID, work, work))
        os.mkdir(work + "/sq")
        os.chmod(work + "/sq", 0o777)
        bg("squid", "-N", "-n", "sb%d" % os.getpid(), "-f", work + "/squid")
        found["squid"] = "connect:%d" % SQUID
    if shutil.which("microsocks"):
        bg("microsocks", "-i", "127.0.0.1", "-p", str(SOCKS))
        found["microsocks"] = "socks:%d" % SOCKS
    time.sleep(1)
    return found


def sandboxes():
    """name -> words before the command; their own proxy is in the environment inside"""
    found = {}
    srt = peers + "/srt/node_modules/.bin/srt"
    if os.path.exists(srt):
        with open(work + "/srt.json", "w", encoding="utf-8") as f:
            json.dump({"network": {"allowedDomains": ["127.0.0.1", "localhost"], "deniedDomains": [], "allowLocalBinding": True},
                       "filesystem": {"denyRead": [], "allowWrite": [work], "denyWrite": []}}, f)
        os.environ["PATH"] = peers + "/node24/node_modules/.bin:" + os.environ["PATH"]
        found["srt"] = [srt, "--settings", work + "/srt.json"]
    for codex in glob.glob(peers + "/codex/node_modules/@openai/codex-linux-*/vendor/*/bin/codex"):
        home = os.path.expanduser("~/.sendbox-bench-codex")  # it refuses one below a temporary folder
        os.makedirs(home, exist_ok=True)
        with open(home + "/config.toml", "w", encoding="utf-8") as f:
            f.write('[permissions.bench]\nextends=":workspace"\n[permissions.bench.network]\nenabled=true\nmode="full"\n'
                    'allow_local_binding=true\n[permissions.bench.network.domains]\n"127.0.0.1"="allow"\n')
        os.environ["CODEX_HOME"] = home
        found["codex"] = [codex, "sandbox", "-P", "bench", "--enable", "network_proxy", "--"]
    return found


def ways(command, *args):
    """name -> argv, all of them the same load"""
    w = {"direct": [work + "/net_load", command, "127.0.0.1", str(PORT), *args],
         "splice relay": [work + "/net_load", command, "127.0.0.1", str(RELAY), *args],
         "sendbox": box("./net_load", command, "host.sendbox.internal", str(PORT), *args)}
    for name, p in proxied.items():
        w[name] = [work + "/net_load", command, "127.0.0.1", str(PORT), *args, p]
    for name, before in boxes.items():
        script = "%s/in-%s" % (work, command)
        with open(script, "w", encoding="utf-8") as f:  # a proxy's user and password, if any, are in the variable
            f.write('#!/bin/sh\nx=${HTTP_PROXY:-$http_proxy}; x=${x#*//}\ncase $x in *@*) NET_AUTH=$(printf %%s "${x%%@*}" | base64 -w0); export NET_AUTH ;; esac\n'
                    'exec %s/net_load %s 127.0.0.1 %d %s connect:env\n' % (work, command, PORT, " ".join(args)))
        os.chmod(script, 0o755)
        w[name] = [*before, script]
    return w


def each(commands, n, warm=1):
    got = {k: [] for k in commands}
    for i in range(n + warm):
        for k, argv in list(commands.items()):
            try:
                v = lines(argv)
            except (subprocess.SubprocessError, OSError, ValueError):
                put(bench="net", name=k, error="failed, left out")
                del commands[k]
                continue
            if i >= warm:
                got[k] += v
    return {k: got[k] for k in commands}


def big():
    got = each(ways("get", str(BIG), "1"), 7)
    rate = {k: BIG / statistics.median(v) for k, v in got.items()}  # bytes a us = MB/s
    for k, v in rate.items():
        put(bench="net-big", name=k, unit="MB/s", median=round(v))
    for k in rate:
        if k != "sendbox" and "sendbox" in rate:
            put(bench="net-big", ratio="sendbox/" + k, value=round(rate["sendbox"] / rate[k], 2), bar=0.7 if k == "splice relay" else 1 if k != "direct" else None)


def small():
    got = each(ways("get", "2", "400"), 5)
    base = sorted(got["direct"])
    for k, v in got.items():
        v = sorted(v)
        med, p99 = statistics.median(v), v[int(len(v) * 0.99)]
        put(bench="net-small", name=k, unit="us", median=round(med), p99=round(p99), added=round(med - statistics.median(base)),
            added_p99=round(p99 - base[int(len(base) * 0.99)]))


def connections():
    got = each({k: v for k, v in ways("rate", "3").items() if k not in boxes}, 3)
    rate = {k: statistics.median(v) for k, v in got.items()}
    for k, v in rate.items():
        put(bench="net-rate", name=k, unit="connections/s", median=round(v))
    best = max([rate[k] for k in ("microsocks", "tinyproxy") if k in rate], default=None)
    if best and "sendbox" in rate:
        put(bench="net-rate", ratio="sendbox/faster of microsocks, tinyproxy", value=round(rate["sendbox"] / best, 2), bar=0.6)


def memory():
    p = subprocess.Popen(box("./net_load", "hold", "host.sendbox.internal", str(PORT), "1000", more=["--net-connections", "1100"]),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=work)
    p.stdout.readline()
    time.sleep(0.5)
    mine, todo = [], [p.pid]
    while todo:
        q = todo.pop()
        mine.append(q)
        todo += [int(c) for c in subprocess.run(["pgrep", "-P", str(q)], stdout=subprocess.PIPE, check=False).stdout.split()]
    for q in mine:
        with open("/proc/%d/status" % q, encoding="utf-8") as f:
            st = dict(line.split(":", 1) for line in f if ":" in line)
        if st["Name"].strip() == "sendbox-net":
            put(bench="net-memory", name="sendbox-net with 1,000 connections", unit="KiB", value=int(st["VmRSS"].split()[0]), bar=8192)
    p.stdin.close()
    p.wait()


def microvm():
    size = 256 << 20
    net = lines(box("./net_load", "get", "host.sendbox.internal", str(PORT), str(size), "3", runtime="microvm"))
    # means: the guest's clock has steps of 4 ms
    req = [statistics.mean(lines(box("./net_load", "get", "host.sendbox.internal", str(PORT), "2", "300", runtime="microvm")))]
    ask = lines(box("./net_load", "ask", "host.sendbox.internal", str(PORT), "1000", runtime="microvm"))
    # the raw channel: standard input into nothing, and an echo
    with open(work + "/zero", "wb") as f:
        f.truncate(size)
    raw = []
    for _ in range(3):
        with open(work + "/zero", "rb") as f:
            raw += lines(box("sh", "-c", "read x; a=$(date +%s%N); cat >/dev/null; b=$(date +%s%N); echo $(( (b - a) / 1000 ))", runtime="microvm"),
                         stdin=subprocess.Popen(["sh", "-c", "echo; cat " + work + "/zero"], stdout=subprocess.PIPE).stdout)
    p = subprocess.Popen(box("cat", runtime="microvm"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=work, bufsize=0)
    echo = []
    for _ in range(300):
        t = time.monotonic_ns()
        p.stdin.write(b"x\n")
        p.stdout.read(2)
        echo.append((time.monotonic_ns() - t) / 1000)
    p.stdin.close()
    p.wait()
    put(bench="net-microvm", name="download", unit="MB/s", median=round(size / statistics.median(net)), raw_channel=round(size / statistics.median(raw)),
        ratio=round(statistics.median(raw) / statistics.median(net), 2), bar=0.7)
    put(bench="net-microvm", name="small request, fresh connection", unit="us", median=round(statistics.median(req)),
        raw_channel_echo=round(statistics.median(echo)))
    put(bench="net-microvm", name="small request, open connection", unit="us", median=round(statistics.median(ask)),
        raw_channel_echo=round(statistics.median(echo)), ratio=round(statistics.median(echo) / statistics.median(ask), 2), bar=0.7)


try:
    bg(tool, "serve", str(PORT))
    bg(tool, "relay", str(RELAY), str(PORT))
    time.sleep(0.5)
    boxes = sandboxes() if {"big", "small"} & set(parts) else {}
    proxied = proxies() if {"big", "small", "rate"} & set(parts) else {}
    for name in parts:
        {"big": big, "small": small, "rate": connections, "memory": memory, "microvm": microvm}[name]()
finally:
    for q in started:
        try:
            os.killpg(q.pid, 9)
        except ProcessLookupError:
            pass
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(os.path.expanduser("~/.sendbox-bench-codex"), ignore_errors=True)
