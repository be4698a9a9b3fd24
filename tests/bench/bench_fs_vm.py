#!/usr/bin/env python3
"""bench_fs_vm.py BUILD: a shared folder in the micro-VM through sendbox-fs, against QEMU's virtiofsd
(cache=auto) with the same guest kernel, and in the namespace runtime against the host itself.
Interleaved rounds, medians, one JSON line each. Needs root (virtiofsd), cpio and busybox-static."""
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(sys.argv[1])
n = int(os.environ.get("N", "3"))
sendbox = build + "/host/cli/sendbox"
load = build + "/tests/bench/fs_load"
BARS = {"walk_first": 1.1, "walk_second": 0.6, "read_small": 0.8, "read_big_first": 2.5, "create_1000": 1.6,
        "unlink_1000": 1.6, "lookup_missing_1000": 1.7}


def cache():
    home = os.environ.get("SENDBOX_HOME")
    return home + "/cache" if home else os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/sendbox"


def make_tree(top):
    for d in range(100):
        os.makedirs("%s/tree/d%03d" % (top, d))
        for f in range(50):
            with open("%s/tree/d%03d/f%04d" % (top, d, f), "wb") as out:
                out.write(os.urandom(3072))
    with open(top + "/big", "wb") as out:
        for _ in range(200):
            out.write(os.urandom(1 << 20))
    os.mkdir(top + "/scratch")
    shutil.copy(load, top + "/fs_load")


def drop():
    subprocess.run(["sync"], check=True)
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


def results(text):
    out = {}
    for line in text.splitlines():
        at = line.find('{"bench":"fs"')
        if at >= 0:
            r = json.loads(line[at:].strip())
            out[r["what"]] = r["ms"]
    return out


def run_sendbox(top, extra):
    drop()
    r = subprocess.run([sendbox, "run"] + extra + ["--project", top, "--", "./fs_load", "tree", "big", "scratch"],
                       capture_output=True, text=True, timeout=180, check=False)
    return results(r.stdout)


def initrd(work, release):
    src = glob.glob(cache() + "/kernels/" + release + "/modules")[0]
    root = work + "/ird"
    os.makedirs(root + "/bin")
    for d in ("dev", "proc", "sys", "mnt", "m"):
        os.mkdir(root + "/" + d)
    shutil.copy("/bin/busybox", root + "/bin/busybox")
    shutil.copy(load, root + "/bin/fs_load")
    names = ["virtio_ring", "virtio", "virtio_mmio", "fuse", "virtiofs"]
    for m in names:
        found = glob.glob(src + "/**/" + m + ".ko", recursive=True)
        shutil.copy(found[0], root + "/m/" + m + ".ko")
    with open(root + "/init", "w", encoding="ascii") as f:
        f.write("#!/bin/busybox sh\nb=/bin/busybox\n$b mount -t proc p /proc; $b mount -t sysfs s /sys; $b mount -t devtmpfs d /dev\n"
                + "".join("$b insmod /m/%s.ko\n" % m for m in names)
                + "$b mount -t virtiofs share /mnt && cd /mnt && /bin/fs_load tree big scratch\n$b reboot -f\n")
    os.chmod(root + "/init", 0o755)
    subprocess.run("find . | cpio -o -H newc --quiet >../ird.cpio", shell=True, cwd=root, check=True)
    return work + "/ird.cpio"


def run_virtiofs(top, work, kernel, ird, khz):
    sock = work + "/vfs.sock"
    drop()
    server = subprocess.Popen(["/usr/lib/qemu/virtiofsd", "--socket-path=" + sock, "-o", "source=" + top, "-o", "cache=auto", "-o",
                               "sandbox=chroot"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        if os.path.exists(sock):
            break
        time.sleep(0.05)
    r = subprocess.run(["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-serial", "stdio", "-accel",
                        "tcg", "-m", "1024", "-global", "virtio-mmio.force-legacy=false", "-object",
                        "memory-backend-memfd,id=m,size=1024M,share=on", "-M", "microvm,rtc=on,memory-backend=m", "-chardev",
                        "socket,id=fs,path=" + sock, "-device", "vhost-user-fs-device,chardev=fs,tag=share,queue-size=1024", "-kernel",
                        kernel, "-initrd", ird, "-append",
                        "console=ttyS0 panic=-1 quiet tsc_early_khz=%d cryptomgr.notests 8250.nr_uarts=1 no_timer_check pci=off audit=0 "
                        "i8042.noaux i8042.nokbd" % khz], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=180, check=False)
    server.terminate()
    server.wait()
    return results(r.stdout)


def main():
    work = tempfile.mkdtemp(prefix="sb-fsvm-", dir="/var/tmp")
    top = work + "/share"
    os.mkdir(top)
    make_tree(top)
    signed = subprocess.run([sendbox, "run", "--accel", "tcg", "--project", top, "--dry-run", "--", "true"], capture_output=True,
                            text=True, check=True).stdout
    plan = json.loads(json.loads(signed)["plan"])
    kernel = cache() + "/kernels-elf/" + plan["kernel_sha256"] + ".elf"
    ird = initrd(work, plan["kernel_release"])
    with open(work + "/tsc.c", "w", encoding="ascii") as f:
        f.write("#include <stdio.h>\n#include <time.h>\n#include <x86intrin.h>\n"
                "static double ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t); return t.tv_sec * 1e9 + t.tv_nsec; }\n"
                "int main(void) { double a = ns(); unsigned long long c = __rdtsc(); struct timespec w = {0, 50000000}; nanosleep(&w, 0);\n"
                "double b = ns(); unsigned long long d = __rdtsc(); printf(\"%.0f\\n\", (double)(d - c) / (b - a) * 1e6); return 0; }\n")
    subprocess.run(["gcc", "-O2", "-o", work + "/tsc", work + "/tsc.c"], check=True)
    khz = int(subprocess.run([work + "/tsc"], capture_output=True, text=True, check=True).stdout)
    runs = {"sendbox-vm": [], "virtiofsd": [], "namespace": [], "native": []}
    for _ in range(n):
        runs["sendbox-vm"].append(run_sendbox(top, ["--accel", "tcg", "--memory", "1024m", "--disk", "64m"]))
        runs["virtiofsd"].append(run_virtiofs(top, work, kernel, ird, khz))
        runs["namespace"].append(run_sendbox(top, ["--runtime", "namespace"]))
        drop()
        r = subprocess.run([load, "tree", "big", "scratch"], cwd=top, capture_output=True, text=True, check=True)
        runs["native"].append(results(r.stdout))
    medians = {}
    for name, list_ in runs.items():
        for what in list_[0]:
            v = [r[what] for r in list_ if what in r]
            medians[name, what] = statistics.median(v)
            print(json.dumps({"bench": "fs", "name": name, "what": what, "unit": "ms", "n": len(v), "median": round(medians[name, what], 2)}))
    for a, b in (("sendbox-vm", "virtiofsd"), ("namespace", "native")):
        for (name, what), m in medians.items():
            if name == a and (b, what) in medians:
                print(json.dumps({"bench": "fs", "ratio": a + "/" + b, "what": what, "value": round(m / max(medians[b, what], 0.001), 3),
                                  "bar": 1.05 if a == "namespace" else BARS.get(what)}))
    shutil.rmtree(work)


main()
