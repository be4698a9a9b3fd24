#!/usr/bin/env python3
"""sendbox-imgfs against mkfs.erofs: what it serves is what lay in the folder, and a layer that is
broken, foreign or gone ends it or one request, never more. Needs root for the mounts."""
import ctypes, os, random, shutil, signal, socket, stat, subprocess, sys, tempfile, time

exe = sys.argv[1]
n = 0
bad = 0
libc = ctypes.CDLL(None, use_errno=True)


def ok(name, good, text=""):
    global n, bad
    n += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {n} - {name}")
    if not good and text:
        print("# " + str(text))


def finish():
    print(f"1..{n}")
    sys.exit(1 if bad else 0)


if os.geteuid() != 0:
    print("ok 1 - sendbox-imgfs serves layers # SKIP mounts need root")
    print("1..1")
    sys.exit(0)
work = tempfile.mkdtemp(prefix="imgfs.")
libc.unshare(0x20000)
libc.mount(None, b"/", None, 1 << 18 | 1 << 14, None)


def start(layers, owner=None, send=None):
    """Return (process, mount point)."""
    at = tempfile.mkdtemp(dir=work)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    opt = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other"
    if libc.mount(b"sb", at.encode(), b"fuse", 1 | 2 | 4, opt.encode()) != 0:
        sys.exit(f"Bail out! mount: {ctypes.get_errno()}")
    ours, theirs = socket.socketpair()
    fds = [os.open(p, os.O_RDONLY) for p in layers]
    for i, fd in enumerate(fds):
        os.dup2(fd, 50 + i)
    argv = [exe] + [w for i in range(len(fds)) for w in ("--layer", str(50 + i))]
    if owner:
        argv += ["--owner", owner]
    p = subprocess.Popen(argv, preexec_fn=lambda: os.dup2(theirs.fileno(), 3), stderr=subprocess.PIPE,
                         pass_fds=[3] + [50 + i for i in range(len(fds))], text=True)
    theirs.close()
    try:
        socket.send_fds(ours, [b"x"], [fuse if send is None else send])
    except BrokenPipeError:
        pass # it has refused a layer already
    os.close(fuse)
    ours.close()
    for fd in fds:
        os.close(fd)
    return p, at


def end(p, at):
    libc.umount2(at.encode(), 2)
    try:
        return p.wait(timeout=20)
    except subprocess.TimeoutExpired:
        p.kill()
        return "still there"


def refused(layer):
    p, at = start([layer])
    try:
        code = p.wait(timeout=20)
    except subprocess.TimeoutExpired:
        code = "still there"
    end(p, at)
    return code, p.stderr.read()


def make(src, out, *options):
    subprocess.run(["mkfs.erofs", *options, out, src], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def differences(a, b, count):
    """Between the folder and what is served."""
    out = []
    for top, folders, files in os.walk(a):
        if sorted(os.listdir(top)) != sorted(os.listdir(b + top[len(a):]) + (["null"] if top == a else [])):
            out.append(f"{top}: list")
        for name in folders + files:
            p = os.path.join(top, name)
            q = b + p[len(a):]
            if name == "null":
                continue
            s, t = os.lstat(p), os.lstat(q)
            count[0] += 1
            keys = ["st_mode", "st_nlink", "st_mtime_ns", "st_rdev"]
            if not stat.S_ISDIR(s.st_mode):
                keys.append("st_size")
            out += [f"{p}: {k}" for k in keys if getattr(s, k) != getattr(t, k)]
            if sorted(os.listxattr(p, follow_symlinks=False)) != sorted(os.listxattr(q, follow_symlinks=False)):
                out.append(f"{p}: xattrs")
            if stat.S_ISLNK(s.st_mode) and os.readlink(p) != os.readlink(q):
                out.append(f"{p}: link")
            if stat.S_ISREG(s.st_mode) and open(p, "rb").read() != open(q, "rb").read():
                out.append(f"{p}: bytes")
    return out


src = work + "/src"
rnd = random.Random(1)
os.makedirs(src + "/d/e/f")
for i in range(700):
    with open(f"{src}/d/file-{i}", "w") as f:
        f.write("x" * i)
for size in (0, 1, 4095, 4096, 4097, 8192, 3000001):
    with open(f"{src}/size-{size}", "wb") as f:
        f.write(rnd.randbytes(size))
os.symlink("../size-1", src + "/d/link")
os.link(src + "/size-4097", src + "/d/hard")
os.mknod(src + "/whiteout", stat.S_IFCHR)
os.mknod(src + "/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
os.mkfifo(src + "/fifo")
os.chown(src + "/size-1", 12, 70000)
os.setxattr(src + "/d/e", "user.overlay.opaque", b"y")
os.setxattr(src + "/d/hard", "user.long", b"q" * 3000)
for i in range(100):
    os.setxattr(f"{src}/d/file-{i}", "user.same", b"one value for all of them")
images = {"compact": ["-T1700000000", "-x1"], "extended": ["-Eforce-inode-extended"],
          "noinline": ["-Enoinline_data"], "no shared attributes": ["-x9999"]}
for name, options in images.items():
    image = f"{work}/{name.split()[0]}.erofs"
    make(src, image, *options)
    p, at = start([image])
    count = [0]
    d = differences(src, at + "/0", count)
    if "-T1700000000" in options:
        d = [x for x in d if not x.endswith("st_mtime_ns")]
    ok(f"{name}: {count[0]} files are served as they were", not d and count[0] > 700, d[:5])
    end(p, at)

base = f"{work}/extended.erofs"
p, at = start([base, f"{work}/noinline.erofs"])
ok("two layers stand side by side", sorted(os.listdir(at)) == ["0", "1"], os.listdir(at))
ok("a device is not shown", not os.path.lexists(at + "/0/null") and "null" not in os.listdir(at + "/0"))
ok("an id that no session has is nobody", os.stat(at + "/1/size-1").st_gid == 65534)
ok("the mark of an opaque folder", os.getxattr(at + "/0/d/e", "user.overlay.opaque") == b"y")
names = os.listxattr(at + "/0/d/e")
ok("... and no other attribute is made up", names == ["user.overlay.opaque"], names)
for what in (lambda: open(at + "/0/size-1", "w"), lambda: os.unlink(at + "/0/size-1"),
             lambda: os.mkdir(at + "/0/new"), lambda: os.chmod(at + "/0/size-1", 0)):
    try:
        what()
        ok("it can be written", False)
    except OSError:
        pass
ok("nothing can be written", True)
os.mkdir(work + "/over")
os.mkdir(work + "/work")
os.mkdir(work + "/merged")
opt = f"lowerdir={at}/1/d:{at}/0,upperdir={work}/over,workdir={work}/work,userxattr"
r = libc.mount(b"ov", (work + "/merged").encode(), b"overlay", 0, opt.encode())
merged = os.listdir(work + "/merged") if r == 0 else []
ok("overlayfs takes them, and hides what is whited out", "file-5" in merged and "d" in merged and
   "whiteout" not in merged, (r, ctypes.get_errno(), merged[:5]))
libc.umount2((work + "/merged").encode(), 2)
ok("it ends with its mount", end(p, at) == 0)
p, at = start([base], owner="1000:1001")
s = os.lstat(at + "/0/d/hard")
ok("one owner for everything where there is no other", (s.st_uid, s.st_gid) == (1000, 1001))
end(p, at)

broken = work + "/broken.erofs"
whole = open(base, "rb").read()
for name, change in {
    "empty": lambda b: b"", "cut": lambda b: b[:-4096], "no EROFS": lambda b: b"\0" * 8192,
    "changed superblock": lambda b: b[:1040] + b"\1" + b[1041:],
}.items():
    open(broken, "wb").write(change(whole))
    code, text = refused(broken)
    ok(f"refused: {name}", code == 1 and "layer 0" in text, (code, text))
subprocess.run(["mkfs.erofs", "-zlz4", broken, src], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
code, text = refused(broken)
ok("refused: compressed", code == 1 and "compression" in text, (code, text))
p, at = start([base], send=os.open("/dev/null", os.O_RDWR))
try:
    code = p.wait(timeout=20)
except subprocess.TimeoutExpired:
    code = "still there"
ok("refused: a descriptor that is not /dev/fuse", code == 1, code)
end(p, at)

# mutated metadata: each walk ends, and the server outlives it
alive = 0
rounds = 25
for i in range(rounds):
    b = bytearray(whole)
    b[1032] &= 0xfe  # without the checksum
    for _ in range(200):
        b[rnd.randrange(1280, min(len(b), 200000))] = rnd.randrange(256)
    open(broken, "wb").write(b)
    p, at = start([broken])
    steps = 0
    for top, folders, files in os.walk(at + "/0"):
        for name in folders + files:
            steps += 1
            try:
                q = os.path.join(top, name)
                os.lstat(q)
                os.listxattr(q, follow_symlinks=False)
                if os.path.isfile(q):
                    open(q, "rb").read(1 << 20)
            except OSError:
                pass
        if steps > 3000 or top.count("/") > 40:
            break
    alive += end(p, at) in (0, 1)
ok("broken metadata is an error of the request, not of the server", alive == rounds, alive)
shutil.rmtree(work, ignore_errors=True)
finish()
