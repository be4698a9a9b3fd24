"""Time of processes, in interleaved rounds: the machine is not quiet, so what is compared runs in turn."""
import ctypes
import json
import os
import resource
import statistics
import sys
import time

NULL = os.open("/dev/null", os.O_RDWR)
PR_SET_CHILD_SUBREAPER = 36


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


def run(argv, env=None):
    """Return: (ms from exec to exit, ms of processor time of all that came of it). What it leaves behind comes to
    this process, and is waited for before the next one starts."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    cpu = spent()
    begin = time.monotonic_ns()
    pid = os.posix_spawnp(argv[0], argv, env or os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, NULL, fd) for fd in (0, 1, 2)])
    _, status = os.waitpid(pid, 0)
    took = (time.monotonic_ns() - begin) / 1e6
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        sys.exit("failed with %d: %s" % (code, " ".join(argv)))
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return took, spent() - cpu


def rounds(what, ways, n, warm=1):
    """@ways: name -> function that returns what run() does. Return: name -> list of (wall, cpu)."""
    got = {name: [] for name in ways}
    for i in range(n + warm):
        for name, way in ways.items():
            t = way()
            if i >= warm:
                got[name].append(t)
    for name, times in got.items():
        wall, cpu = ([t[k] for t in times] for k in (0, 1))
        say(bench=what, name=name, unit="ms", n=n, median=round(statistics.median(wall), 1), min=round(min(wall), 1),
            cpu_median=round(statistics.median(cpu), 1))
    return got


def ratio(what, got, a, b, bar=None):
    """The median of the rounds' ratios, and those of the fastest rounds and of the processor time."""
    pairs = list(zip(got[a], got[b]))
    say(bench=what, ratio="%s/%s" % (a, b), median=round(statistics.median(x[0] / y[0] for x, y in pairs), 3),
        of_min=round(min(x[0] for x, _ in pairs) / min(y[0] for _, y in pairs), 3),
        cpu=round(statistics.median(x[1] / y[1] for x, y in pairs), 3), bar=bar)


def difference(what, got, a, b, bar=None):
    pairs = list(zip(got[a], got[b]))
    say(bench=what, difference="%s-%s" % (a, b), unit="ms",
        median=round(statistics.median(x[0] - y[0] for x, y in pairs), 1),
        of_min=round(min(x[0] for x, _ in pairs) - min(y[0] for _, y in pairs), 1),
        cpu=round(statistics.median(x[1] - y[1] for x, y in pairs), 1), bar=bar)


def say(**line):
    print(json.dumps({k: v for k, v in line.items() if v is not None}), flush=True)
