"""approvals.py WORK PROVIDER. Prints TAP."""
import json
import os
import shutil
import sqlite3
import sys
import time

import ask
from ask import ASK, Pty, background, call, questions, talk, told, write

work, provider = sys.argv[1:3]
vm = provider == "microvm"
home = os.environ["SENDBOX_HOME"]
cmd, run = work + "/cmd", work + "/run"
port, other = ask.serve(), ask.serve()
write(work + "/p/get.py", ask.GET)


def config(more="", ports=(port, other)):
    write(work + "/p/c.yaml", "policy: {network: {ask: [%s]}}\n%s"
          % (", ".join('"host.sendbox.internal:%d/any"' % p for p in ports), more))


def get(*ports):
    return [run, "--", "python3", "get.py", *map(str, ports)]


def lines(shown):
    return [w for w in shown.replace(b"\r", b"").decode(errors="replace").split("\n")
            if w.startswith(("GOT", "REFUSED", "EMPTY"))]


def audit(*options):
    return [json.loads(w) for w in call([cmd, "audit", "ls", "--json", *options]).stdout.splitlines()]


def grants():
    return json.loads(call([cmd, "grants", "ls", "--json"]).stdout)


config()
status, shown = talk(get(port, port), [b"once\n", b"no\n"])
told(status == 0 and [w.split()[0] for w in lines(shown)] == ["GOT", "REFUSED"], "once is for one connection, no refuses the next", shown)
told(b"network: host.sendbox.internal:%d" % port in shown and b"rule: host.sendbox.internal" in shown and b"c.yaml:1" in shown,
     "the question shows target, rule and place", shown)
told(b"denied once" in shown and b"(not-approved)" in shown, "the refusal is told, with its reason", shown)

r = call([cmd, "policy", "test", "--config", work + "/p/c.yaml", "--connect", f"host.sendbox.internal:{port}"])
told(r.returncode == 1 and "to be asked" in r.stdout and "ok:" not in r.stdout and "is allowed" not in r.stdout, "policy test says that it asks", r)

# held: nothing of the program shows while the question does, and nothing typed gets to it
write(work + "/p/noise.py", """
import socket, sys, threading, time
def noise():
    while True:
        print("NOISE", flush=True)
        time.sleep(0.02)
def typed():
    for line in sys.stdin:
        print("TYPED", line.strip(), flush=True)
threading.Thread(target=noise, daemon=True).start()
threading.Thread(target=typed, daemon=True).start()
time.sleep(0.2)
try:
    s = socket.create_connection(("host.sendbox.internal", int(sys.argv[1])))
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print("ANSWERED" if s.recv(99) else "REFUSED", flush=True)
except OSError:
    print("REFUSED", flush=True)
time.sleep(0.6)
import os; os._exit(0)
""")
p = Pty([run, "--", "python3", "noise.py", str(port)])
told(p.until(rb"NOISE") and p.until(ASK), "the program is heard, then it asks", p.shown)
quiet = p.watch(1.0)
told(b"NOISE" not in quiet, "while the question shows the program is silent", quiet)
os.write(p.fd, b"\x1b[200~once\r\x1b[201~")
told(b"NOISE" not in p.watch(0.6), "a paste is no answer")
os.write(p.fd, b"\x1b[Aonc\x7fce\r")
told(p.until(rb"ANSWERED") and p.until(rb"NOISE"), "keys that move are nothing, an answer is one, and the program goes on", p.shown)
told(p.end() == 0 and b"TYPED" not in p.shown, "nothing that was typed then got to the program", p.shown)

p = Pty([run, "--", "python3", "noise.py", str(port)])
p.until(rb"NOISE")
os.write(p.fd, b"once\nonce\n")
told(p.until(ASK) and b"ANSWERED" not in p.watch(1.2), "what was typed before the question is no answer to it", p.shown)
p.type(b"no\n")
told(p.until(rb"REFUSED") and p.end() == 0, "and the answer is the one after it", p.shown)

# through the explicit proxy: asked for the same target, before anything is dialled
write(work + "/p/proxy.py", """
import os, socket, sys, urllib.parse
p = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
for port in sys.argv[1:]:
    s = socket.create_connection((p.hostname, p.port))
    s.sendall(b"CONNECT host.sendbox.internal:%d HTTP/1.1\\r\\nHost: host.sendbox.internal:%d\\r\\n\\r\\n" % (int(port), int(port)))
    try:
        d = s.recv(999)
    except OSError:
        d = b"cut off"
    if b" 200 " not in d.split(b"\\r\\n")[0]:
        print("REFUSED", d.split(b"\\r\\n")[0].decode(), flush=True)
        continue
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    d = b""
    while x := s.recv(999):
        d += x
    print("GOT" if b"hello-from-host" in d else "EMPTY", flush=True)
""")
n = ask.Hello.served
status, shown = talk([run, "--proxy-env", "--", "python3", "proxy.py", str(port), str(port)], [b"once\n", b"no\n"])
told([w.split()[0] for w in lines(shown)] == ["GOT", "REFUSED"] and shown.count(b"network: host.sendbox.internal:%d" % port) == 2 and ask.Hello.served == n + 1,
     "CONNECT through the proxy is asked for: once, then no", shown)
r = call([run, "--proxy-env", "--", "python3", "proxy.py", str(port)])
told("REFUSED" in r.stdout and "(not-approved)" in r.stderr and ask.Hello.served == n + 1, "... nobody there: refused, and nothing is dialled", r)

# for the session, for a pattern, for ever
status, shown = talk(get(port, port, other, other), [b"session\n", b"pattern *.internal:*\n"])
told([w.split()[0] for w in lines(shown)] == ["GOT"] * 4 and shown.count(b"sendbox asks") == 2, "session and pattern answer what comes later", shown)
told(grants()["grants"] == [], "and leave nothing behind")
status, shown = talk(get(port), [b"nonsense\n", b"pattern **\n", b"pattern *.org:1\n", b"\n"])
told(shown.count(b"allow it?") == 4 and lines(shown)[0].startswith("REFUSED"), "other words are asked for again; Enter alone is no", shown)
status, shown = talk(get(port), [b"forever\n"])
told(lines(shown) == ["GOT"], "for ever", shown)
g = grants()
told(g["sound"] and len(g["grants"]) == 1 and g["grants"][0]["subject"] == f"host.sendbox.internal:{port}", "a grant is kept", g)
status, shown = talk(get(port, other), [b"no\n"])
told([w.split()[0] for w in lines(shown)] == ["GOT", "REFUSED"] and shown.count(b"sendbox asks") == 1, "it holds in the next session, for its target alone", shown)
a = [w for w in audit("--kind", "approval") if w["reason"] == "grant"]
told(len(a) == 1 and a[0]["data"]["grant"] == g["grants"][0]["id"] and a[0]["subject"] == g["grants"][0]["subject"], "what it decided there is on record", a)
config("timeout: 3000")
status, shown = talk(get(port), [b"no\n"])
told(shown.count(b"sendbox asks") == 1, "and not when the policy is another", shown)
config()

# the store: an old database, a row of nobody's
state = home + "/state"
r = call([cmd, "grants", "revoke", "99"])
told(r.returncode == 1 and "there is no grant" in r.stderr, "revoking what is not there", r)


def copy_db(to):
    os.makedirs(to, exist_ok=True)
    for n in os.listdir(state):
        if n.startswith("state.db"):
            shutil.copy2(f"{state}/{n}", f"{to}/{n}")


def put_db(of):
    for n in os.listdir(state):
        if n.startswith("state.db"):
            os.unlink(f"{state}/{n}")
    for n in os.listdir(of):
        shutil.copy2(f"{of}/{n}", f"{state}/{n}")


copy_db(work + "/p/old")
r = call([cmd, "grants", "revoke", str(g["grants"][0]["id"])])
told(r.returncode == 0 and grants()["grants"] == [], "revoke", r)
status, shown = talk(get(port), [b"no\n"])
told(shown.count(b"sendbox asks") == 1, "what was revoked is asked again", shown)
put_db(work + "/p/old")
r = call([cmd, "grants", "ls"])
told(r.returncode == 1 and "old or changed state.db" in r.stderr and "does not count" in r.stdout, "an old database is seen", r)
status, shown = talk(get(port), [b"no\n"])
told(shown.count(b"sendbox asks") == 1 and lines(shown)[0].startswith("REFUSED"), "and its grants do not count", shown)
status, shown = talk(get(port), [b"forever\n"])
told(not lines(shown) or lines(shown)[0].startswith("REFUSED"), "nothing is added to it", shown)
r = call([cmd, "grants", "revoke", "--all"])
told(r.returncode == 0 and grants()["sound"], "revoke --all begins anew", r)
status, shown = talk(get(other), [b"never\n"])
told(lines(shown)[0].startswith("REFUSED") and grants()["grants"][0]["action"] == "deny", "never is kept", shown)
db = sqlite3.connect(state + "/state.db")
db.execute("INSERT INTO grants(deny, pattern, kind, subject, rule, bound, created_s, expires_s, uses) SELECT 0, 0, kind, "
           "'host.sendbox.internal:%d', 'r', zeroblob(32), 1, 9999999999, 0 FROM grants" % port)
db.commit()
db.close()
g = grants()
told(not g["sound"] and [x["counts"] for x in g["grants"]] == [True, False], "a row that nobody granted counts for nothing", g)
r = call(get(other))
told("REFUSED" in r.stdout, "the deny rule still counts", r)
call([cmd, "grants", "revoke", "--all"])

# nobody there
begun = time.monotonic()
r = call(get(port))
told(r.returncode == 0 and "REFUSED" in r.stdout and "not-approved" in r.stderr, "nobody there: refused", r)
told(time.monotonic() - begun < 60, "at once")

# from another terminal
config("approvals: {mode: wait, timeout: 20}")
s = background(get(port, other, port))
q = questions(cmd)
told(len(q) == 1 and q[0]["subject"] == f"host.sendbox.internal:{port}" and q[0]["kind"] == "network", "approvals shows the question", q)
r = call([cmd, "approvals"])
told(f"{q[0]['session'][:8]}:1  network" in r.stdout, "also for people", r)
r = call([cmd, "approve", "77"])
told(r.returncode == 1 and "no open question" in r.stderr, "an answer to a question that there is not", r)
r = call([cmd, "approve", "--pattern", "*.org:*", "1"])
told(r.returncode == 2 and "must match" in r.stderr and len(questions(cmd)) == 1, "a pattern that does not match leaves it open", r)
for words in (["--once", "--forever"], ["--once", "--session"], ["--session", "--forever"], ["--once", "--pattern", "*.internal:*"],
              ["--session", "--pattern", "*.internal:*"], ["--pattern", "*.internal:*", "--pattern", "**.internal:*"]):
    r = call([cmd, "approve", *words, "1"])
    told(r.returncode == 2 and ("exclude each other" in r.stderr or "one pattern" in r.stderr) and len(questions(cmd)) == 1 and grants()["grants"] == [],
         "answers that contradict each other are none: " + " ".join(words), r)
sid = q[0]["session"][:8]
r = call([cmd, "approve", "--session", sid + ":1"])
told(r.returncode == 0 and r.stdout.startswith(f"allowed network: host.sendbox.internal:{port}\n") and f"until session {sid} ends" in r.stdout,
     "approve says what it allowed, and for how long", r)
q = questions(cmd)
told(q and q[0]["number"] == 2, "the next question", q)
r = call([cmd, "deny", "2"])
told(r.returncode == 0 and r.stdout.startswith(f"refused network: host.sendbox.internal:{other}\n") and "this once" in r.stdout, "deny says what it refused", r)
out, err = s.communicate(timeout=60)
told(out.split("\n")[0] == "GOT" and out.split("\n")[1].startswith("REFUSED") and out.split("\n")[2] == "GOT", "deny refuses, the grant of the session holds", out, err)
r = call([cmd, "deny", "2"])
told(r.returncode == 1, "after the session there is nothing to answer", r)
config()
f = background([cmd, "approvals", "--follow", "--json"])
time.sleep(1)
s = background([run, "--", "sh", "-c", f"sleep 2; exec python3 get.py {port}"])
line = json.loads(f.stdout.readline())
r = call([cmd, "approve", "1"])
out, err = s.communicate(timeout=60)
told(line["subject"] == f"host.sendbox.internal:{port}" and out.startswith("GOT"), "whoever follows is somebody to ask", line, out, err, r)
told(json.loads(f.stdout.readline())["allowed"] is True, "and sees how it was decided")
f.kill()
f.wait()
# the follower goes: nobody is left
f = background([cmd, "approvals", "--follow"])
time.sleep(1)
s = background([run, "--", "sh", "-c", f"sleep 2; exec python3 get.py {port}"])
questions(cmd)
f.kill()
f.wait()
out, err = s.communicate(timeout=60)
told(out.startswith("REFUSED"), "when the last one who could answer goes, the answer is no", out, err)
config("approvals: {timeout: 1}")
status, shown = talk(get(port), [])
told(lines(shown)[0].startswith("REFUSED") and b"decided elsewhere, or too late" in shown, "no answer in time is no", shown)
config("approvals: {mode: never}")
status, shown = talk(get(port), [])
told(b"sendbox asks" not in shown and lines(shown)[0].startswith("REFUSED"), "mode never asks nobody", shown)
config("approvals: {questions: 1, session_grants: false, forever_grants: false, pattern_grants: false}")
status, shown = talk(get(port, other), [b"session\n", b"once\n"])
told([w.split()[0] for w in lines(shown)] == ["GOT", "REFUSED"] and shown.count(b"sendbox asks") == 1 and b"not possible here" in shown,
     "answers that the configuration forbids, and its number of questions", shown)

# a hook
write(work + "/p/hook", "#!/bin/sh\ncat >%s/p/question\n. %s/p/how\n" % (work, work))
os.chmod(work + "/p/hook", 0o755)
os.makedirs(home + "/config", exist_ok=True)
write(home + "/config/config.yaml", "approvals: {hook: [%s/p/hook], hook_timeout: 1}\n" % work)
config()
for how, want, name in (("exit 0", "GOT", "status 0 is once"), ("exit 1", "REFUSED", "status 1 is no"), ("echo whatever", "REFUSED", "a word that is no answer is no"),
                        ("kill -9 $$", "REFUSED", "a hook that is killed is no"), ("sleep 20", "REFUSED", "a hook that takes too long is no"),
                        ("echo session", "GOT", "a word of its output"), ("exit 3", "REFUSED", "a hook that leaves it to people, and nobody there")):
    write(work + "/p/how", how + "\n")
    r = call(get(port))
    told(r.stdout.split()[0] == want, "hook: " + name, r)
q = json.load(open(work + "/p/question", encoding="utf-8"))
told(q["v"] == 1 and q["kind"] == "network" and q["subject"] == f"host.sendbox.internal:{port}" and len(q["session"]) == 32, "hook: what it is told", q)
status, shown = talk(get(port), [b"once\n"])
told(lines(shown) == ["GOT"], "hook: and at a terminal people are asked then", shown)
ask_echo = "policy: {commands: {scope: top_level, allowlist: [{run: 'echo **', action: ask}]}}\n"
for more, how, want, never in (("", "echo 'pattern echo *'", "no answer for the first command, which has no session yet", "is false"),
                               ("approvals: {forever_grants: false}\n", "echo forever", "approvals.forever_grants is false", "no session"),
                               ("", "exit 3", "approvals.hook leaves it to people", "set approvals.hook")):
    write(work + "/p/c.yaml", more + ask_echo)
    write(work + "/p/how", how + "\n")
    r = call([run, "--", "echo", "x"])
    told(r.returncode == 120 and want in r.stderr and never not in r.stderr, "hook: why its answer does not count: " + how, r)
config()
os.unlink(home + "/config/config.yaml")

# an instance: at its clients' terminals
p = Pty([run, "--name", "one", "--", "python3", "get.py", str(port)])
told(p.until(ASK), "instance: the question shows at its client", p.shown)
p.type(b"once\n")
told(p.until(rb"GOT") and p.end() == 0, "instance: and is answered there", p.shown)
call([cmd, "rm", "one"])
write(work + "/p/c.yaml", "policy: {commands: {scope: top_level, allowlist: [{run: 'echo **', action: ask}]}}\n")
r = call([run, "--name", "two", "--detach", "--", "sleep", "300"])
p = Pty([cmd, "exec", "two", "--", "echo", "it-runs"])
told(r.returncode == 0 and p.until(ASK) and b"command: echo it-runs" in p.shown, "exec: it is asked where it is typed", r, p.shown)
p.type(b"once\n")
told(p.until(rb"\nit-runs") and p.end() == 0, "exec: yes runs it", p.shown)
r = call([cmd, "exec", "two", "--", "echo", "it-runs"])
told(r.returncode != 0 and "nobody-to-ask" in r.stderr and "it-runs\n" not in r.stdout, "exec: nobody there is no", r)
a, c = audit("--kind", "approval")[-1], audit("--kind", "command", "--verdict", "deny")[-1]
told(a["reason"] == "nobody-to-ask" and a["verdict"] == "deny" and a["subject"] == "echo it-runs", "exec: the decision is on record", a)
told(c["action"] == "start" and c["data"]["argv"] == ["echo", "it-runs"] and c["rule"].startswith("echo **") and c["session"] == a["session"] != "",
     "exec: so is the refused command, with its session", c)
f = background([cmd, "approvals", "--follow"])
time.sleep(1)
s = background([cmd, "exec", "two", "--", "echo", "followed"])
questions(cmd)
r = call([cmd, "approve", "--pattern", "echo *", str((questions(cmd) or [{"number": 0}])[0]["number"])])
out, err = s.communicate(timeout=60)
told(out == "followed\n" and r.returncode == 0, "exec: whoever follows can answer, as the refusal says", out, err, r)
f.kill()
f.wait()
r = call([cmd, "exec", "two", "--", "echo", "again"])
told(r.stdout == "again\n", "exec: a pattern holds for the session", r)
a = audit("--kind", "approval")[-1]
told(a["reason"] == "grant" and a["verdict"] == "allow" and a["subject"] == "echo again", "exec: and what it decides is on record", a)
told(a["data"].get("question", 0) > 0 and a["data"].get("pattern") == "echo *" and a["data"].get("scope") == "session", "exec: with the answer that allows it", a)
b = [w for w in audit("--kind", "approval") if w["reason"] == "the-answer-was-yes"][-1]
told(b["data"].get("question") == a["data"].get("question") and b["data"].get("pattern") == "echo *" and b["data"].get("scope") == "session",
     "exec: that answer says how far it goes", b)
r = call([cmd, "report", "two"])
told(f"question {b['data'].get('question')}, session, pattern echo *" in r.stdout, "exec: so does the report", r)
r = call([cmd, "audit", "ls", "--kind", "approval", "-n", "1"])
told(f"(grant), question {b['data'].get('question')}, scope session, pattern echo *" in r.stdout, "exec: and the list", r)
r = call([cmd, "exec", "--env", "X=1", "two", "--", "echo", "again"])
a = audit("--kind", "approval")[-1]
told(r.returncode != 0 and "again\n" not in r.stdout and a["subject"] == "X=\\\\? echo again" and a["reason"] == "nobody-to-ask",
     "exec: but not with a variable that nobody was asked about", r, a)
call([cmd, "stop", "--time", "1", "two"])
call([cmd, "rm", "two"])

# what was said for ever names what takes it back
write(work + "/p/c.yaml", "approvals: {mode: wait, timeout: 60, grant_uses: 3}\n"
      "policy: {commands: {scope: top_level, allowlist: [{run: 'echo **', action: ask}, {run: 'true **', action: ask}]}}\n")
call([run, "--name", "ever", "--detach", "--", "sleep", "300"])
for words, want in ((["approve", "--forever", "--pattern", "echo *"], ["allowed command: echo told", '"echo *" matches', " until 2", ", 3 uses"]),
                    (["deny", "--forever"], ["refused command: true told", "in every session"])):
    s = background([cmd, "exec", "ever", "--", "echo" if "approve" in words else "true", "told"])
    q = questions(cmd)
    r = call([cmd, *words, str(q[0]["number"])]) if q else None
    s.communicate(timeout=60)
    g = grants()["grants"]
    told(r and r.returncode == 0 and len(g) == 1 and all(w in r.stdout for w in want) and "sendbox grants revoke %d takes it back" % g[0]["id"] in r.stdout,
         "%s --forever says how it is taken back" % words[0], r, g, q)
    r = call([cmd, "grants", "revoke", str(g[0]["id"])]) if g else None
    told(r and r.returncode == 0 and grants()["grants"] == [], "... and that does", r)
call([cmd, "stop", "--time", "1", "ever"])
call([cmd, "rm", "ever"])

# exec: the session's settings count
write(work + "/p/c.yaml", "approvals: {mode: wait, timeout: 30, forever_grants: false}\n"
      "policy: {commands: {scope: top_level, denylist: ['id **'], allowlist: [{run: 'echo **', action: ask}]}}\n")
call([run, "--name", "three", "--detach", "--", "sleep", "300"])
s = background([cmd, "exec", "three", "--", "echo", "waited"])
q = questions(cmd)
waits = s.stderr.readline()
told(q and f"waits until somebody answers: sendbox approve {q[0]['session'][:8]}:{q[0]['number']} (or deny), within " in waits, "exec: it says what it waits for", q, waits)
r = call([cmd, "approve", "--session", str(q[0]["number"])]) if q else None
out, err = s.communicate(timeout=60)
told(q and q[0]["subject"] == "echo waited" and out == "waited\n", "exec: mode wait waits for sendbox approve", q, out, err, r)
p = Pty([cmd, "exec", "three", "--", "echo", "typed"])
told(p.until(ASK) and b"forever" not in p.shown and b"session, pattern P" in p.shown, "exec: the answers that the session permits", p.shown)
p.type(b"foo\n")
told(p.until(ASK) and b"once, session, pattern P, no, never\r\n" in p.shown and b"forever" not in p.shown, "... and no others are named", p.shown)
p.type(b"session\n")
told(p.until(rb"\ntyped") and p.end() == 0, "exec: for the session", p.shown)
r = call([cmd, "exec", "three", "--", "echo", "typed"])
told(r.stdout == "typed\n", "exec: it holds", r)
r = call([cmd, "exec", "three", "--", "id", "-u"])
c = audit("--kind", "command", "--verdict", "deny")[-1]
told(r.returncode == 120 and c["subject"] == "id" and c["data"]["argv"] == ["id", "-u"] and c["data"]["instance"] == "three" and c["reason"] == "rule",
     "exec: a command of the deny list is refused and on record", r, c)
call([cmd, "exec", "three", "--", "id", "-G"])
r = call([cmd, "report", "three"])
told("command start: id -u (rule), rule id ** (" in r.stdout and "command start: id -G (rule)" in r.stdout and "policy test" not in r.stdout,
     "exec: the report tells its words and its rule, and no more", r)
call([cmd, "stop", "--time", "1", "three"])
call([cmd, "rm", "three"])

# run: what is refused before there is a session, and what a grant or a deny rule decides
r = call([run, "--", "id", "-u"])
c = audit("--kind", "command", "--verdict", "deny")[-1]
told(r.returncode == 120 and c["data"]["argv"] == ["id", "-u"] and c["session"] == "" and c["data"]["project"] == work + "/p", "run: a refused command is on record", r, c)
r = call([run, "--", "echo", "x"])
told('refused to run "echo x": the rule echo ** (' in r.stderr and "/c.yaml:" in r.stderr, "run: the rule and its place", r)
told(r.returncode == 120 and "nobody-to-ask" in r.stderr and "at a terminal" in r.stderr and "--follow" not in r.stderr and "wait" not in r.stderr,
     "run: remedies that help", r)
told(audit("--kind", "command")[-1]["reason"] == "not-approved", "... on record")
write(work + "/p/c.yaml", "policy: {commands: {scope: top_level, allowlist: [{run: 'echo **', action: ask}]}}\n")
p = Pty([run, "--", "echo", "kept"])
p.until(ASK)
p.type(b"forever\n")
told(p.until(rb"\nkept") and p.end() == 0, "run: for ever", p.shown)
r = call([run, "--", "echo", "kept"])
a = audit("--kind", "approval")[-1]
told(r.stdout == "kept\n" and a["reason"] == "grant" and a["data"]["by"] == "grant" and a["data"]["grant"] > 0, "run: the grant's decision is on record", r, a)
b = [w for w in audit("--kind", "approval") if w["reason"] == "the-answer-was-yes"][-1]
told(a["data"].get("scope") == b["data"].get("scope") == "forever" and a["data"]["grant"] == b["data"].get("grant"), "run: so is the answer that left it", a, b)

# variables that are passed with it are part of the command
r = call([run, "--env", "B=1", "--env", "A=2", "--env", "B=3", "--", "echo", "kept"])
a = audit("--kind", "approval")[-1]
told(r.returncode == 120 and "nobody-to-ask" in r.stderr and a["verdict"] == "deny" and a["subject"] == "A=\\\\? B=\\\\? echo kept",
     "run: a grant does not hold with other variables", r, a)
p = Pty([run, "--env", "A=2", "--", "echo", "kept"])
p.until(ASK)
p.type(b"forever\n")
told(b"command: A=\\? echo kept" in p.shown and p.until(rb"\nkept") and p.end() == 0, "... the question names them", p.shown)
r = call([run, "--env", "A=2", "--", "echo", "kept"])
told(r.stdout == "kept\n", "... and a grant with the same ones does", r)
r = call([run, "--env", "A=5", "--", "echo", "kept"])
told(r.returncode == 120 and "nobody-to-ask" in r.stderr, "... not with another value, which is part of the policy", r)

# a counted grant has so many uses, however many sessions take them at once
write(work + "/p/c.yaml", "approvals: {grant_uses: 2}\npolicy: {commands: {scope: top_level, allowlist: [{run: 'echo **', action: ask}]}}\n")
p = Pty([run, "--", "echo", "counted"])
p.until(ASK)
p.type(b"forever\n")
told(p.until(rb"\ncounted") and p.end() == 0, "a grant of two uses", p.shown)
many = [background([run, "--", "echo", "counted"]) for _ in range(3 if vm else 6)]
got = [s.communicate(timeout=240)[0] for s in many]
told(got.count("counted\n") == 2 and got.count("") == len(many) - 2, "... has two, whoever is first", got)
write(work + "/p/c.yaml", "policy: {commands: {scope: top_level, allowlist: [{run: 'echo **', action: ask}]}}\n")

# a new key of the host keeps what was granted; a change that cannot be recorded is none
key, audited = call([cmd, "key", "export"]).stdout, home + "/state/keys/audit.key"
os.chmod(audited, 0o644)
for words in (["rotate"], ["trust", "%064d" % 7], ["revoke", key[:16]]):
    r = call([cmd, "key"] + words)
    told(r.returncode != 0 and call([cmd, "key", "export"]).stdout == key, "key %s: not without its record" % words[0], r)
r = call([run, "--", "echo", "kept"])
told(r.returncode == 120 and "not-recorded" in r.stderr and "could not be recorded" in r.stderr and "kept\n" not in r.stdout,
     "without a record a grant allows nothing, and the refusal says both", r)
r = call([cmd, "config", "trust", work + "/p/c.yaml"])
told(r.returncode != 0 and "cannot be recorded" in r.stderr, "config trust: not without its record", r)
os.chmod(audited, 0o600)
for words in (["key", "rotate", "x"], ["key", "rotate", "--", "x"], ["key", "rotate", "--json"], ["key", "rotate", "--name", "x"], ["key", "list", "x"],
              ["key", "list", "--floor", "now"], ["key", "export", "--json"], ["key", "revoke", "--floor", "now", key[:16]], ["plan", "show", "--key", "x", "y"],
              ["plan", "verify", "--all", "y"], ["completions", "bash", "x"]):
    r = call([cmd, *words])
    told(r.returncode == 2 and r.stdout == "" and ("too" in r.stderr or " has no --" in r.stderr) and call([cmd, "key", "export"]).stdout == key,
         "words that mean nothing here: " + " ".join(words[:3]), r)
r = call([cmd, "key", "rotate"])
told(r.returncode == 0 and grants()["sound"] and grants()["grants"][0]["counts"], "the grants outlive the key", r, grants())
k = audit("--kind", "key")
told(len(k) == 1 and k[0]["action"] == "rotate" and k[0]["data"]["former"] == key.strip() and k[0]["subject"] == call([cmd, "key", "export"]).stdout.strip(),
     "its rotation is on record", k)
r = call([run, "--", "echo", "kept"])
told(r.stdout == "kept\n", "and the grant decides", r)
r = call([cmd, "key", "revoke", key[:16]])
told(r.returncode == 0 and audit("--kind", "key")[-1]["action"] == "revoke" and grants()["sound"], "also when the former key is revoked", r)
p = Pty([run, "--", "echo", "never"])
p.until(ASK)
p.type(b"never\n")
p.end()
r = call([run, "--", "echo", "never"])
a = audit("--kind", "approval")[-1]
told(r.returncode == 120 and a["reason"] == "deny-rule" and a["data"]["by"] == "deny rule", "run: the deny rule's decision is on record", r, a)
call([cmd, "grants", "revoke", "--all"])
ask.finish()
