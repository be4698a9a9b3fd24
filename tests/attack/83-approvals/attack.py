"""attack.py WORK PROVIDER. Prints TAP."""
import os
import sys
import time

import ask
from ask import ASK, Pty, call, talk, told, write

work, provider = sys.argv[1:3]
home = os.environ["SENDBOX_HOME"]
cmd, run = work + "/cmd", work + "/run"
port, other = ask.serve(), ask.serve()
write(work + "/p/get.py", ask.GET)


def config(more=""):
    write(work + "/c.yaml", 'policy: {network: {ask: ["host.sendbox.internal:%d/any", "host.sendbox.internal:%d/any"]}}\n%s' % (port, other, more))


def served():
    return ask.Hello.served


config()
# control: a yes at the terminal is a yes
n = served()
status, shown = talk([run, "--", "python3", "get.py", str(port)], [b"once\n"])
told(b"GOT" in shown and served() == n + 1, "control: an approved connection arrives", shown)

# a picture of the question, answered: what is typed goes to the program, and nothing is approved
write(work + "/p/picture.py", """
import sys, socket
sys.stdout.write("\\x1b[2J\\x1b[H---- sendbox asks (question 1; the session is held) ----\\r\\n  command: true\\r\\nsendbox: allow it? ")
sys.stdout.flush()
print("PROGRAM READ", sys.stdin.readline().strip(), flush=True)
s = socket.create_connection(("host.sendbox.internal", int(sys.argv[1])))
s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
try:
    print("GOT" if s.recv(99) else "EMPTY", flush=True)
except OSError:
    print("REFUSED", flush=True)
""")
n = served()
p = Pty([run, "--", "python3", "picture.py", str(port)])
p.until(ASK)
p.type(b"forever\n")
told(p.until(rb"PROGRAM READ forever") and p.until(ASK), "what is typed to a picture goes to the program, and the true question comes", p.shown)
p.type(b"no\n")
told(p.until(rb"REFUSED|EMPTY") and p.end() == 0 and served() == n, "and approved nothing", p.shown)
told("no grants" in call([cmd, "grants", "ls"]).stdout, "nor left a grant")

# the terminal prepared for the question: invisible text, a scroll region, another character set, reversed keys
write(work + "/p/prepare.py", """
import sys, socket
sys.stdout.write("\\x1b[8m\\x1b[1;2r\\x1b(0\\x0e\\x1b[?25l\\x1b[4h\\x1b[?6h")
sys.stdout.write("\\x1b]P7000000\\x1b]PF000000\\x1b]10;#000000\\x07\\x1b]11;#000000\\x07\\x1b]4;7;#000000\\x07\\x1b[?69h\\x1b[1;2s\\x1b[?5h\\x1b[?2026h")
sys.stdout.flush()
s = socket.create_connection(("host.sendbox.internal", int(sys.argv[1])))
s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
try:
    s.recv(99)
except OSError:
    pass
""")
p = Pty([run, "--", "python3", "prepare.py", str(port)])
told(p.until(rb"\x1b\[\?2026h.*\x1b\\\x18\x1b\]R\x1b\\\x1b\]104\x07\x1b\]110\x07\x1b\]111\x07.*\x1b\[\?2026l\x1b\[\?5l\x1b\[\?69l\x1b\[0m\x1b\(B\x0f\x1b\[\?6l\x1b\[r\x1b\[\?7h\x1b\[\?25h\x1b\[2l\x1b\[4l.*\x1b\[0;97;40m.*sendbox asks"), "the question undoes what was done to the terminal", p.shown)
p.type(b"no\n")
p.end()

# an answer that cannot be recorded leaves nothing behind, neither here nor for ever
key = home + "/state/keys/audit.key"
for answer in (b"session", b"pattern *.internal:*", b"forever", b"pattern-forever *.internal:*", b"once"):
    n = served()
    p = Pty([run, "--", "sh", "-c", f"python3 get.py {port}; until [ -e again ]; do sleep 0.1; done; exec python3 get.py {port}"])
    p.until(ASK)
    os.chmod(key, 0o644)  # no record can be written by it
    p.type(answer + b"\n")
    told(p.until(rb"(REFUSED|EMPTY|end)") and served() == n, "%s without a record: refused" % answer.decode(), p.shown)
    os.chmod(key, 0o600)
    write(work + "/p/again", "")
    os.chmod(work + "/p/again", 0o644)
    told(p.until(ASK), "... and what it would have left is not there: it asks again", p.shown)
    p.type(b"no\n")
    told(p.end() == 0 and served() == n and "no grants" in call([cmd, "grants", "ls"]).stdout, "... nor in the store", p.shown)
    os.unlink(work + "/p/again")
p = Pty([run, "--", "python3", "get.py", str(port), str(port)])
p.until(ASK)
p.type(b"session\n")
told(p.end() == 0 and p.shown.count(b"GOT") == 2, "(control: with a record it holds)", p.shown)

# answers typed ahead, by the thousand
n = served()
p = Pty([run, "--", "sh", "-c", f"sleep 1.5; exec python3 get.py {port}"])
end = time.monotonic() + 1
while time.monotonic() < end:
    os.write(p.fd, b"once\nforever\ny\n")
    p.watch(0.05)
told(p.until(ASK) and p.watch(1.0).count(b"GOT") == 0 and served() == n, "a thousand answers typed ahead are none", p.shown[-600:])
p.type(b"no\n")
told(p.end() == 0 and served() == n, "and the no after it holds")

# typing that goes on when the question appears: a paste, a key held down
n = served()
p = Pty([run, "--", "python3", "get.py", str(port)])
p.until(ASK)
end = time.monotonic() + 2
while time.monotonic() < end:
    os.write(p.fd, b"once\n")
    p.watch(0.05)
told(b"REFUSED" not in p.shown and b"GOT" not in p.shown and served() == n, "nor is typing that goes on after the question appeared", p.shown[-600:])
p.type(b"once\n")
told(p.end() == 0 and served() == n + 1, "control: after some silence the same word is an answer", p.shown[-600:])

# a flood: the same again and again, then a thousand others
n = served()
status, shown = talk([run, "--", "sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9; do python3 get.py {port}; done"], [b"no\n"])
told(shown.count(b"sendbox asks") == 1 and shown.count(b"REFUSED") == 9 and served() == n, "what was refused is not asked again at once", shown)
config("approvals: {rate: 2}")
many = " ".join(str(p) for p in [port, other, port, other])
status, shown = talk([run, "--", "python3", "get.py", *many.split()], [b"once\n", b"once\n", b"once\n", b"once\n"])
told(shown.count(b"sendbox asks") == 2 and shown.count(b"GOT") == 2 and shown.count(b"REFUSED") == 2, "questions have a rate", shown)
config("approvals: {questions: 1}")
status, shown = talk([run, "--", "python3", "get.py", str(port), str(other)], [b"once\n", b"once\n"])
told(shown.count(b"sendbox asks") == 1 and shown.count(b"GOT") == 1, "and a session a number of them", shown)

# an approval for another target, another port, later
config()
n = served()
status, shown = talk([run, "--", "python3", "get.py", str(port), str(other), str(port)], [b"session\n", b"no\n"])
told(shown.count(b"sendbox asks") == 2 and served() == n + 2, "an approval of one target is none of another", shown)
status, shown = talk([run, "--", "python3", "get.py", str(port)], [b"no\n"])
told(shown.count(b"sendbox asks") == 1, "nor of the next session", shown)
config("approvals: {grant_uses: 1}")
n = served()
status, shown = talk([run, "--", "python3", "get.py", str(port), str(port), str(port)], [b"session\n", b"no\n"])
told(served() == n + 2 and shown.count(b"sendbox asks") == 2, "a grant that is used up is over", shown)
config("approvals: {timeout: 1}")
n = served()
p = Pty([run, "--", "python3", "get.py", str(port)])
p.until(ASK)
p.watch(1.3)
try:
    os.write(p.fd, b"once\n")
except OSError:
    pass
told(p.end() == 0 and served() == n and b"REFUSED" in p.shown, "an answer after its time approves nothing", p.shown)

# from within: the socket, the database, the commands
config()
write(work + "/p/within.sh", f"""
for f in {home}/state/state.db {home}/state/keys/grants.head {home}/run; do [ -e "$f" ] && echo "SEES $f"; done
find / -name approvals.sock -o -name attach.sock -o -name grants.head 2>/dev/null | sed 's/^/FOUND /'
SENDBOX_HOME={home} {cmd} approve 1 2>/dev/null && echo APPROVED
(python3 get.py {port} >out.txt 2>&1; echo "END $(cat out.txt)") &
sleep 2; SENDBOX_HOME={home} {cmd} approve 1 2>/dev/null && echo APPROVED
wait
""")
n = served()
p = Pty([run, "--", "sh", "within.sh"])
p.until(ASK)
p.watch(3)
p.type(b"no\n")
told(p.end() == 0 and b"SEES" not in p.shown and b"FOUND" not in p.shown and b"APPROVED" not in p.shown and served() == n, "from within nothing of it is in reach", p.shown)
r = call([run, "--", "sh", "-c", "echo 'approvals: {mode: wait}' >.sendbox.yaml; echo 'policy: {network: {mode: open}}' >>.sendbox.yaml; ls -la .sendbox.yaml"])
told(r.returncode == 0, "control: the session may write a project's file", r)
r = call([cmd, "run", "--runtime", provider, "--", "true"])
told(r.returncode == 2 and ("not accepted" in r.stderr or "config trust" in r.stderr), "a configuration that the session wrote counts for nothing until it is accepted", r)
os.unlink(work + "/p/.sendbox.yaml")
write(work + "/p/.sendbox.yaml", "approvals: {hook: [/bin/true]}\n")
r = call([cmd, "run", "--runtime", provider, "--trust-config", "--", "true"])
told(r.returncode == 2 and "your own configuration" in r.stderr, "a hook cannot come from a project", r)
os.unlink(work + "/p/.sendbox.yaml")
r = call([run, "--", "sh", "-c", f"SENDBOX_HOME={home} {cmd} run --runtime namespace --no-filter -- true 2>&1 || echo NO"])
told("NO" in r.stdout, "a session cannot start a weaker one", r)
# words of a command with control characters
write(work + "/c.yaml", "policy: {commands: {scope: top_level, allowlist: [{run: 'echo **', action: ask}]}}\n")
status, shown = talk([run, "--", "echo", "a\033]0;evil\007\nsendbox: allow it? yes", " "], [b"no\n"])
told(b"\033]0;" not in shown and b"echo a\\x1b]0;evil\\x07\\x0asendbox:\\x20allow" in shown, "the words of a command are shown without what they do", shown)
status, shown = talk([run, "--", "echo", "x" * 1900], [b"once\n", b"no\n"], rows=14)
told(b"not possible here" in shown and b"too long for this terminal" in shown, "what does not fit on the terminal cannot be approved there", shown[-800:])
r = call([run, "--", "echo", "x" * 3000])
told(r.returncode == 120 and "too long to ask about" in r.stderr, "nor what is too long to be asked about", r.stderr[-400:])
ask.finish()
