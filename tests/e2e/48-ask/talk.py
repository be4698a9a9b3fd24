"""talk.py WORK: WORK/cmd OPTIONS under a pseudo-terminal of its own. Prints TAP."""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

from ask import ASK, finish, told

work = sys.argv[1]
TRUST = rb"Use it, now and until it changes\? \[y/N\] "


def talk(args, steps, early=b"", hang_up=False):
    """Wait for each step's pattern, then type its answer. Return: status, all that was shown."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(work + "/cmd", ["cmd", *args])
    shown = b""
    seen = 0
    end = time.monotonic() + 170
    if early:
        os.write(fd, early)
    steps = list(steps)
    while time.monotonic() < end:
        if steps:
            m = re.compile(steps[0][0]).search(shown, seen)
            if m:
                seen = m.end()
                answer = steps.pop(0)[1]
                if hang_up:
                    break
                time.sleep(0.6)  # what is typed at once does not count
                os.write(fd, answer)
        if select.select([fd], [], [], 0.2)[0]:
            try:
                got = os.read(fd, 65536)
            except OSError:
                got = b""
            if not got:
                break
            shown += got
    os.close(fd)
    status = None
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None, shown
    return (os.waitstatus_to_exitcode(status)), shown


def write(text):
    with open(work + "/p/.sendbox.yaml", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(work + "/p/.sendbox.yaml", 0o600)


SAY = ["--", "echo", "it-runs"]
write("env: {A: one}\n")
for name, answer in (("no", b"n\n"), ("an empty line", b"\n"), ("end of file", b"\x04"), ("another word", b"yeah\n"),
                     ("a very long line", b"y" * 300 + b"\n")):
    status, shown = talk(SAY, [(TRUST, answer)])
    told(status == 2 and b"it-runs" not in shown and b"not accepted" in shown, f"trust: {name} is no", status, shown)
    if name == "no":
        told(b"| env: {A: one}" in shown and b".sendbox.yaml: new or changed" in shown, "trust: the question shows what is asked for", shown)
status, shown = talk(SAY, [(TRUST, b"n\n")], early=b"y\n")
told(status == 2 and b"it-runs" not in shown, "trust: what was typed before the question is no answer", status, shown)
status, shown = talk(SAY, [(TRUST, b"\x03")])
told(status not in (0, None) and b"it-runs" not in shown, "trust: interrupt ends it", status, shown)
status, shown = talk(SAY, [(TRUST, b"")], hang_up=True)
told(status not in (0, None), "trust: the terminal goes away", status, shown)
status, shown = talk(SAY, [(TRUST, b"y\n")])
told(status == 0 and b"it-runs" in shown, "trust: yes runs it", status, shown)
status, shown = talk(SAY, [])
told(status == 0 and b"it-runs" in shown and b"[y/N]" not in shown, "trust: and is not asked again", status, shown)
write("env: {A: two}\n")
status, shown = talk(SAY, [(TRUST, b"n\n")])
told(status == 2 and b"| env: {A: two}" in shown, "trust: after a change it is", status, shown)
r = subprocess.run([work + "/cmd", *SAY], stdin=subprocess.DEVNULL, capture_output=True, timeout=170, start_new_session=True)
told(r.returncode == 2 and b"[y/N]" not in r.stderr and b"sendbox config trust" in r.stderr, "trust: without a terminal nobody is asked", r)

write("policy:\n  commands:\n    scope: top_level\n    allowlist: [{run: 'echo **', action: ask}]\n")
status, shown = talk(SAY, [(TRUST, b"yes\n"), (ASK, b"y\n")])
told(status == 0 and b"it-runs" in shown.split(b"allow it?")[-1], "ask: yes runs it", status, shown)
told(b"echo **" in shown and b".sendbox.yaml:4" in shown, "ask: the question names the rule and its place", shown)
for name, answer in (("no", b"n\n"), ("an empty line", b"\n"), ("end of file", b"\x04")):
    status, shown = talk(SAY, [(ASK, answer)])
    told(status not in (0, None) and b"the-answer-was-no" in shown and shown.count(b"it-runs") <= 2, f"ask: {name} is no", status, shown)
status, shown = talk(SAY, [(ASK, b"n\n")], early=b"y\ny\n")
told(status not in (0, None), "ask: what was typed before the question is no answer", status, shown)
status, shown = talk(["--", "echo", "\033]0;evil\007\033[31m"], [(ASK, b"n\n")])
told(status not in (0, None) and b"\033]0;" not in shown and b"\033[31m" not in shown, "ask: the words are shown without control characters", status, shown)
status, shown = talk(["--", "true"], [])
told(status == 0 and b"sendbox asks" not in shown, "ask: another command is not asked for", status, shown)
r = subprocess.run([work + "/cmd", *SAY], stdin=subprocess.DEVNULL, capture_output=True, timeout=170, start_new_session=True)
told(r.returncode not in (0,) and b"nobody-to-ask" in r.stderr, "ask: without a terminal the answer is no", r)

# guarded paths that the session made, at its end
write("guarded_paths: {changed: ask}\n")
KEEP = rb"keep them\? \[y/N\] "
made = work + "/p/.github/workflows/x.yml"
MAKE = ["--", "sh", "-c", "mkdir -p .github/workflows; echo x >.github/workflows/x.yml; printf '\\033[8m\\033]11;#000000\\007'; sleep 1"]
status, shown = talk(MAKE, [(TRUST, b"y\n"), (KEEP, b"y\n")])
told(status == 0 and os.path.exists(made) and b".github/workflows/x.yml" in shown, "guarded: yes keeps them", status, shown)
told(b"\033]111\007" in shown.split(b"\033[8m")[-1], "guarded: what the program did to the terminal is undone first", shown)
for name, answer, early in (("no", b"n\n", b""), ("an empty line", b"\n", b""), ("what was typed before", b"n\n", b"y\ny\n")):
    subprocess.run(["rm", "-rf", work + "/p/.github"], check=True)
    status, shown = talk(MAKE, [(KEEP, answer)], early=early)
    told(status == 0 and not os.path.exists(made), f"guarded: {name} is no", status, shown)
finish()
