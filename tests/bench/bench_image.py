#!/usr/bin/env python3
"""bench_image.py BUILD [ROUNDS [BYTES [FILES]]]: an image of 1 GiB in 20,000 files, three layers with gzip, to a
base that can be mounted, in turn:

  sendbox      `sendbox image pull oci:...`, from exec to exit, files on disk (fsync)
  umoci+mkfs   `umoci unpack` and `mkfs.erofs` of what it unpacked, not synced

Root only: umoci keeps owners."""
import os
import shutil
import subprocess
import sys
import tempfile

import measure

build = os.path.abspath(sys.argv[1])
n = int(sys.argv[2]) if len(sys.argv) > 2 else 3


def ours(work):
    home = work + "/home"
    shutil.rmtree(home, ignore_errors=True)
    os.mkdir(home, 0o700)
    return measure.run([build + "/host/cli/sendbox", "image", "pull", "-q", "oci:%s/lay:t" % work],
                       dict(os.environ, SENDBOX_HOME=home))


def theirs(work):
    shutil.rmtree(work + "/b", ignore_errors=True)
    if os.path.exists(work + "/b.erofs"):
        os.unlink(work + "/b.erofs")
    a = measure.run(["umoci", "--log=error", "unpack", "--image", work + "/lay:t", work + "/b"])
    b = measure.run(["mkfs.erofs", "--quiet", work + "/b.erofs", work + "/b/rootfs"])
    return a[0] + b[0], a[1] + b[1]


def main():
    for tool in ("umoci", "mkfs.erofs"):
        if not shutil.which(tool):
            print("no %s: not measured" % tool, file=sys.stderr)
            return
    with tempfile.TemporaryDirectory(prefix="sb-bench-", dir="/var/tmp") as work:
        subprocess.run([sys.executable, os.path.dirname(os.path.abspath(__file__)) + "/image_make.py", work + "/lay"] +
                       sys.argv[3:], check=True)
        got = measure.rounds("image", {"sendbox": lambda: ours(work), "umoci+mkfs": lambda: theirs(work)}, n, warm=0)
        measure.ratio("image", got, "sendbox", "umoci+mkfs", 1)


main()
