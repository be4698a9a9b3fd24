#!/usr/bin/env python3
"""bench_start.py BUILD [namespace|microvm|help|memory|size ...]: start-up figures, one JSON line each.

Every comparison is interleaved: one run of each, then the next round; medians of N rounds."""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1])
parts = sys.argv[2:] or ["help", "namespace", "microvm", "memory", "size"]
peers = os.environ.get("PEERS", "/tmp/sbpeers")
sendbox = build + "/host/cli/sendbox"
null = os.open("/dev/null", os.O_RDWR)


def once(argv, env=None, ok=(0,)):
    begin = time.monotonic_ns()
    pid = os.posix_spawn(argv[0], argv, env or os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
    _, status = os.waitpid(pid, 0)
    took = (time.monotonic_ns() - begin) / 1e6
    return took if os.waitstatus_to_exitcode(status) in ok else None


def rounds(what, commands, n, warm=2):
    times = {name: [] for name in commands}
    for i in range(n + warm):
        for name, (argv, env) in list(commands.items()):
            t = once(argv, env)
            if t is None:
                print(json.dumps({"bench": what, "name": name, "error": "failed, left out"}), flush=True)
                del commands[name]
                continue
            if i >= warm:
                times[name].append(t)
    medians = {}
    for name in commands:
        v = sorted(times[name])
        medians[name] = statistics.median(v)
        print(json.dumps({"bench": what, "name": name, "unit": "ms", "n": len(v), "median": round(medians[name], 2),
                          "min": round(v[0], 2), "p90": round(v[int(len(v) * 0.9) - 1], 2)}), flush=True)
    return medians


def ratio(what, medians, over, bar):
    for name in over:
        if name in medians and "sendbox" in medians:
            print(json.dumps({"bench": what, "ratio": "sendbox/" + name,
                              "value": round(medians["sendbox"] / medians[name], 3), "bar": bar}), flush=True)


def bundle(work):
    root = work + "/rootfs"
    os.makedirs(root + "/bin")
    for d in ("dev", "proc", "sys", "tmp", "etc"):
        os.mkdir(root + "/" + d)
    shutil.copy("/bin/busybox", root + "/bin/busybox")
    os.symlink("busybox", root + "/bin/true")
    os.makedirs(work + "/b")
    subprocess.run(["runc", "spec"], cwd=work + "/b", check=True)
    with open(work + "/b/config.json", encoding="utf-8") as f:
        c = json.load(f)
    c["root"] = {"path": root, "readonly": True}
    c["process"].update(terminal=False, args=["/bin/true"])
    c["process"].pop("rlimits", None)
    with open(work + "/b/config.json", "w", encoding="utf-8") as f:
        json.dump(c, f)
    return root, work + "/b"


def namespace_peers(work):
    env = dict(os.environ, PATH=peers + "/node24/node_modules/.bin:" + os.environ["PATH"], CODEX_HOME=work + "/codex")
    c = {"fork+exec": (["/bin/true"], None),
         "sendbox": ([sendbox, "run", "--runtime", "namespace", "--", "/bin/true"], None)}

    def add(name, argv, e=None):
        path = shutil.which(argv[0])
        if path:
            c[name] = ([path] + argv[1:], e)
        else:
            print(json.dumps({"bench": "namespace", "name": name, "error": "not installed"}))
    add("bwrap", ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink",
                  "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs",
                  "/tmp", "--die-with-parent", "/bin/true"])
    add("firejail", ["firejail", "--quiet", "--noprofile", "--net=none", "--private-dev", "--private-tmp",
                     "--caps.drop=all", "--seccomp", "--nonewprivs", "/bin/true"])
    if shutil.which("runc") and os.path.exists("/bin/busybox"):
        root, b = bundle(work)
        add("runc", ["runc", "run", "-b", b, "sbbench%d" % os.getpid()])
        add("gvisor", ["runsc", "--platform=ptrace", "--network=none", "--ignore-cgroups", "run", "-bundle", b,
                       "sbg%d" % os.getpid()])
        add("podman", ["podman", "--cgroup-manager=cgroupfs", "--events-backend=file", "--runtime=runc", "run", "--rm",
                       "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--rootfs", root,
                       "/bin/true"])
    os.makedirs(work + "/codex")
    with open(work + "/codex/config.toml", "w", encoding="utf-8") as f:
        f.write('default_permissions = "offline"\n[permissions.offline]\nextends = ":workspace"\n')
    vendor = peers + "/codex/node_modules/@openai/codex-linux-x64/vendor"
    for d in os.listdir(vendor) if os.path.isdir(vendor) else []:
        add("codex", [vendor + "/" + d + "/bin/codex", "sandbox", "-P", "offline", "--", "/bin/true"], env)
    with open(work + "/srt.json", "w", encoding="utf-8") as f:
        json.dump({"network": {"allowedDomains": [], "deniedDomains": []},
                   "filesystem": {"denyRead": [], "allowWrite": [work], "denyWrite": []}}, f)
    add("srt", [peers + "/srt/node_modules/.bin/srt", "--settings", work + "/srt.json", "/bin/true"], env)
    return c


def bench_microvm(work):
    elf = subprocess.run([sendbox, "run", "--accel", "tcg", "--dry-run", "--", "true"], capture_output=True, text=True,
                         check=True)
    plan = json.loads(json.loads(elf.stdout)["plan"])
    cache = (os.environ.get("SENDBOX_HOME", "") and os.environ["SENDBOX_HOME"] + "/cache") or \
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/sendbox"
    kernel = cache + "/kernels-elf/" + plan["kernel_sha256"] + ".elf"
    src = work + "/init.c"
    with open(src, "w", encoding="utf-8") as f:
        f.write("#include <sys/reboot.h>\n#include <unistd.h>\nint main(void) { write(1, \"up\\n\", 3); reboot(RB_AUTOBOOT); return 0; }\n")
    subprocess.run(["gcc", "-O2", "-static", "-w", "-o", work + "/init", src], check=True)
    subprocess.run("printf 'init\\n' | cpio -o -H newc --quiet >ird.cpio", shell=True, cwd=work, check=True)
    khz = tsc_khz(work)
    append = ("console=ttyS0 panic=-1 quiet tsc_early_khz=%d cryptomgr.notests 8250.nr_uarts=1 no_timer_check pci=off "
              "lsm=landlock,yama audit=0 i8042.noaux i8042.nokbd" % khz)
    bare = [shutil.which("qemu-system-x86_64"), "-M", "microvm,rtc=on", "-accel", "tcg", "-m", "512", "-nodefaults",
            "-no-user-config", "-nographic", "-no-reboot", "-serial", "stdio", "-kernel", kernel, "-initrd",
            work + "/ird.cpio", "-append", append]
    return {"bare": (bare, None),
            "sendbox": ([sendbox, "run", "--accel", "tcg", "--", "/bin/true"], None)}


def tsc_khz(work):
    with open(work + "/tsc.c", "w", encoding="utf-8") as f:
        f.write("#include <stdio.h>\n#include <time.h>\n#include <x86intrin.h>\n"
                "static double ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t); return t.tv_sec * 1e9 + t.tv_nsec; }\n"
                "int main(void) { double a = ns(); unsigned long long c = __rdtsc(); struct timespec w = {0, 50000000}; nanosleep(&w, 0);\n"
                "double b = ns(); unsigned long long d = __rdtsc(); printf(\"%.0f\\n\", (double)(d - c) / (b - a) * 1e6); return 0; }\n")
    subprocess.run(["gcc", "-O2", "-o", work + "/tsc", work + "/tsc.c"], check=True)
    return int(subprocess.run([work + "/tsc"], capture_output=True, text=True, check=True).stdout)


def memory(runtime):
    extra = ["--accel", "tcg"] if runtime == "microvm" else []
    p = subprocess.Popen([sendbox, "run", "--runtime", runtime] + extra + ["--", "sh", "-c", "echo up; sleep 100"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.readline()
    time.sleep(1)
    rows = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,rss=,comm="], capture_output=True, text=True, check=True).stdout
    table = [r.split(None, 3) for r in rows.splitlines()]
    inside = {str(p.pid)}
    for _ in range(6):
        inside |= {r[0] for r in table if r[1] in inside}
    total, detail = 0, {}
    for pid, _, rss, name in table:
        if pid not in inside or name.startswith(("qemu", "sendbox-fs")):
            continue
        if runtime == "namespace" and name in ("sh", "sleep"):
            continue
        detail[name] = detail.get(name, 0) + int(rss)
        total += int(rss)
    print(json.dumps({"bench": "memory", "name": runtime, "unit": "KiB resident", "sum": total, "bar": 12288,
                      "each": detail}), flush=True)
    p.terminate()
    p.wait()


def main():
    os.chdir(tempfile.mkdtemp(prefix="sb-bench-"))
    work = tempfile.mkdtemp(prefix="sb-bench-aux-", dir="/var/tmp") # codex refuses a home in /tmp
    n = int(os.environ.get("N", "20"))
    if "help" in parts:
        m = rounds("help", {"fork+exec": (["/bin/true"], None), "sendbox": ([sendbox, "--help"], None)}, n * 2)
        print(json.dumps({"bench": "help", "value": round(m["sendbox"], 2), "unit": "ms", "bar": 3}))
    if "namespace" in parts:
        m = rounds("namespace", namespace_peers(work), n)
        ratio("namespace", m, ["bwrap"], 3)
        ratio("namespace", m, ["runc", "firejail", "codex", "srt", "podman", "gvisor"], 1)
    if "microvm" in parts:
        m = rounds("microvm", bench_microvm(work), max(5, n // 2), warm=1)
        ratio("microvm", m, ["bare"], 1.35)
    if "memory" in parts:
        memory("namespace")
        memory("microvm")
    if "size" in parts:
        total = 0
        for f in (sendbox, build + "/guest/sendbox-guest"):
            shutil.copy(f, work + "/strip")
            subprocess.run(["strip", work + "/strip"], check=True)
            total += os.path.getsize(work + "/strip")
        print(json.dumps({"bench": "size", "unit": "bytes", "value": total, "bar": 4 << 20}))
    shutil.rmtree(work)


main()
