#!/usr/bin/env python3
"""tree_list.py DIR: one line for each name beneath DIR: type, mode, owner, size, links, time, target,
extended attributes, SHA-256 of the content. Two trees are the same when the lists are."""
import hashlib
import os
import stat
import sys

top = sys.argv[1]
paths = [top]
for d, dirs, files in os.walk(top):
    paths += [os.path.join(d, n) for n in dirs + files]
for p in sorted(paths, key=os.fsencode):
    s = os.lstat(p)
    directory = stat.S_ISDIR(s.st_mode)
    xattrs = []
    for n in sorted(os.listxattr(p, follow_symlinks=False)):
        if n != "security.selinux":
            xattrs.append("%s=%s" % (n, os.getxattr(p, n, follow_symlinks=False).hex()))
    target = os.readlink(p) if stat.S_ISLNK(s.st_mode) else ""
    content = ""
    if stat.S_ISREG(s.st_mode):
        with open(p, "rb") as f:
            content = hashlib.sha256(f.read()).hexdigest()
    root = p == top
    print(ascii(os.path.relpath(p, top)), oct(s.st_mode), s.st_uid, s.st_gid,
          "-" if directory else s.st_size, "-" if directory else s.st_nlink,
          "-" if root else s.st_mtime_ns, ascii(target), ",".join(xattrs), content)
