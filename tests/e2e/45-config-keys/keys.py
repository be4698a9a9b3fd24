"""keys.py WORK PROVIDER: the table of all keys. Prints TAP.

PLAN rows: what the plan of a dry run says with the snippet; it must not say so without it.
RUN rows: what a run shows. REFUSED rows: a snippet that is refused with that text."""
import json
import os
import pwd
import re
import subprocess
import sys

work, provider = sys.argv[1:3]
vm = provider == "microvm"
project = work + "/p"
count = bad = 0


def told(ok, name, *more):
    global count, bad
    count += 1
    bad += not ok
    print(("ok" if ok else "not ok"), count, "-", name)
    for line in [] if ok else more:
        print("#", str(line)[:1500].replace("\n", "\n# "))
    sys.stdout.flush()


def call(args, text=None, env=None):
    path = work + "/p/config-under-test.yaml"
    if text is not None:
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o600)
    args = [a if a != "@" else path for a in args]
    r = subprocess.run([work + "/cmd", *args], capture_output=True, text=True, timeout=170,
                       stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
    return r.returncode, r.stdout, r.stderr


def plan(text, more=(), env=None):
    runtime = [] if "provider:" in text else ["--runtime", provider]
    code, out, err = call(["run", *runtime, "--config", "@", "--trust-config", "--dry-run", *more,
                           "--", "true"], text, env)
    if code != 0:
        raise RuntimeError(f"exit {code}: {err}")
    return json.loads(json.loads(out)["plan"])


def rules(p):
    return {(r["deny"], r["host"], r["port_lo"], r["port_hi"]) for r in p["net"]["rules"]}


def command(p, pattern):
    return next((r for r in p["commands"]["rules"] if r["pattern"] == pattern), {})


def net(body):
    return "policy: {network: {%s}}" % body


def commands(body):
    return "policy: {commands: {%s}}" % body


def guard(p, path):
    return next((g["mode"] for g in p["guards"] if g["path"] == project + "/" + path), None)


def env_names(p):
    return [e["name"] for e in p["env"]]


SHA_V = "4c94485e0c21ae6c41ce1dfe7b6bfaceea5ab68e40a2476f50208e526f506080"  # of "v"
MB = 1 << 20
PLAN = {
    "runtime": ("runtime: {image: host, provider: %s}" % provider, lambda p: p["provider_asked"] == provider and "config" in p["provider_reason"]),
    "runtime.provider": ("runtime: {provider: %s}" % provider, lambda p: ".yaml:1" in p["provider_reason"]),
    "runtime.image": ("runtime: {image: \"dir:%s/a\"}" % project, None),
    "resources": ("resources: {cpus: 1}", lambda p: p["cpus_asked"]),
    "resources.cpus": ("resources: {cpus: 1}", lambda p: p["cpus"] == 1 and p["cpus_asked"]),
    "resources.memory_mb": ("resources: {memory_mb: 777}", lambda p: p["memory"] == 777 * MB),
    "resources.disk_size_mb": ("resources: {disk_size_mb: 99}", lambda p: p["disk"] == 99 * MB),
    "resources.pids": ("resources: {pids: 123}", lambda p: p["pids_max"] == 123 and p["pids_asked"]),
    "resources.rlimits": ("resources: {rlimits: {nofile: 321}}", lambda p: p["nofile"] == 321),
    "resources.rlimits.nofile": ("resources: {rlimits: {nofile: 322}}", lambda p: p["nofile"] == 322),
    "resources.rlimits.fsize_mb": ("resources: {rlimits: {fsize_mb: 5}}", lambda p: int(p["rlimits"]["fsize"]) == 5 * MB),
    "resources.rlimits.as_mb": ("resources: {rlimits: {as_mb: 4000}}", lambda p: int(p["rlimits"]["as"]) == 4000 * MB),
    "resources.rlimits.data_mb": ("resources: {rlimits: {data_mb: 3000}}", lambda p: int(p["rlimits"]["data"]) == 3000 * MB),
    "resources.rlimits.stack_mb": ("resources: {rlimits: {stack_mb: 16}}", lambda p: int(p["rlimits"]["stack"]) == 16 * MB),
    "resources.rlimits.cpu_secs": ("resources: {rlimits: {cpu_secs: 77}}", lambda p: int(p["rlimits"]["cpu"]) == 77),
    "resources.rlimits.memlock_mb": ("resources: {rlimits: {memlock_mb: 1}}", lambda p: int(p["rlimits"]["memlock"]) == MB),
    "timeout": ("timeout: 90s", lambda p: p["timeout_ms"] == 90000),
    "uid": ("uid: 4242", lambda p: p["uid"] == 4242),
    "env": ("env: {KEYS_A: v}", lambda p: "KEYS_A" in env_names(p)),
    "env.*": ("env: {KEYS_B: v}", lambda p: {"name": "KEYS_B", "sha256": SHA_V} in p["env"]),
    "mounts": ("mounts: [\"../outside:/mnt/o\"]", lambda p: any(m["guest"] == "/mnt/o" and m["file"] for m in p["mounts"])),
    "mounts[]": ("mounts: [{host: ../outside, guest: /mnt/p}]", lambda p: any(m["guest"] == "/mnt/p" for m in p["mounts"])),
    "mounts[].host": ("mounts: [{host: a, guest: /mnt/q}]", lambda p: any(m["host"] == project + "/a" and m["guest"] == "/mnt/q" for m in p["mounts"])),
    "mounts[].guest": ("mounts: [{host: a, guest: /mnt/r}]", lambda p: any(m["guest"] == "/mnt/r" for m in p["mounts"])),
    "mounts[].mode": ("mounts: [{host: a, guest: /mnt/s, mode: rw}]", lambda p: any(m["guest"] == "/mnt/s" and m["mode"] == "rw" for m in p["mounts"])),
    "guarded_paths": ("guarded_paths: {hidden: [a]}", lambda p: guard(p, "a") == "hidden"),
    "guarded_paths.readonly": ("guarded_paths: {readonly: [b]}", lambda p: guard(p, "b") == "readonly"),
    "guarded_paths.readonly[]": ("guarded_paths: {readonly: [new/one]}", lambda p: guard(p, "new/one") == "readonly"),
    "guarded_paths.hidden": ("guarded_paths: {hidden: [c]}", lambda p: guard(p, "c") == "hidden"),
    "guarded_paths.hidden[]": ("guarded_paths: {hidden: [c/d]}", lambda p: guard(p, "c/d") == "hidden"),
    "ssh_agent": ("ssh_agent: {enabled: true, keys: [one]}", lambda p: [k["comment"] for k in p["ssh"]["keys"]] == ["one"]),
    "ssh_agent.enabled": ("ssh_agent: {enabled: true, keys: [two]}", lambda p: "SSH_AUTH_SOCK" in env_names(p)),
    "ssh_agent.keys": ("ssh_agent: {keys: [two, one]}", lambda p: {k["comment"] for k in p["ssh"]["keys"]} == {"one", "two"}),
    "ssh_agent.keys[]": ("ssh_agent: {keys: [two]}", lambda p: [k["comment"] for k in p["ssh"]["keys"]] == ["two"]),
    "ssh_agent.hosts": ("ssh_agent: {keys: [one], hosts: [git.example]}", lambda p: any(h["name"] == "git.example" for h in p["ssh"]["hosts"])),
    "ssh_agent.hosts[]": ("ssh_agent: {keys: [one], hosts: [\"git.example:2222\"]}", lambda p: any(h["name"] == "[git.example]:2222" for h in p["ssh"]["hosts"])),
    "ssh_agent.ask": ("ssh_agent: {keys: [one], ask: true}", lambda p: p["ssh"].get("ask") is True),
    "policy.network.ask": (net("ask: [\"q.example.com:8443\"]"), lambda p: [(r["host"], r["port_lo"]) for r in p["net"].get("ask", [])] == [("q.example.com", 8443)]),
    "policy.network.ask[]": (net("ask: [10.1.2.4]"), lambda p: any(r["host"].startswith("10.1.2.4") for r in p["net"].get("ask", []))),
    "ssh_agent.sign_data": ("ssh_agent: {keys: [one], sign_data: true}", lambda p: p["ssh"]["sign_data"]),
    "policy": ("policy: {profile: build}", lambda p: p["profile"] == "build"),
    "policy.profile": ("policy: {profile: strict}", lambda p: p["profile"] == "strict"),
    "policy.commands": (commands("default_action: deny, allowlist: [\"true\"]"), lambda p: p["commands"]["default"] == "deny"),
    "policy.commands.default_action": (commands("default_action: deny"), lambda p: p["commands"]["default"] == "deny"),
    "policy.commands.scope": (commands("scope: top_level, denylist: [x]"), lambda p: p["commands"]["scope"] == "top_level"),
    "policy.commands.log_blocked": (commands("default_action: allow, log_blocked: false"), lambda p: p["commands"]["scope"] == "tree" and not p["commands"]["log_blocked"]),
    "policy.network": (net("proxy_env: true"), lambda p: p["net"]["proxy_env"]),
    "policy.network.mode": (net("mode: none"), lambda p: p["net"]["mode"] == "none"),
    "policy.network.default_action": (net("default_action: allow"), lambda p: p["net"]["mode"] == "open"),
    "policy.network.allowed_domains": (net("allowed_domains: [a.example.com]"), lambda p: (False, "a.example.com", 443, 443) in rules(p)),
    "policy.network.allowed_domains[]": (net("allowed_domains: [\"b.example.com:99\"]"), lambda p: (False, "b.example.com", 99, 99) in rules(p)),
    "policy.network.blocked_domains": (net("blocked_domains: [a.example.com]"), lambda p: (True, "a.example.com", 1, 65535) in rules(p)),
    "policy.network.blocked_domains[]": (net("blocked_domains: [\"*.b.example.com\"]"), lambda p: (True, "*.b.example.com", 1, 65535) in rules(p)),
    "policy.network.allow_dns": (net("allow_dns: false"), lambda p: p["net"]["resolvers"] == []),
    "policy.network.max_connections": (net("max_connections: 7"), lambda p: p["net"]["max_connections"] == 7),
    "policy.network.allowed_networks": (net("allowed_networks: [10.0.0.0/8]"), lambda p: (False, "10.0.0.0/8", 1, 65535) in rules(p)),
    "policy.network.allowed_networks[]": (net("allowed_networks: [10.1.2.3]"), lambda p: any(r[1].startswith("10.1.2.3") for r in rules(p))),
    "policy.network.blocked_networks": (net("blocked_networks: [10.0.0.0/8]"), lambda p: (True, "10.0.0.0/8", 1, 65535) in rules(p)),
    "policy.network.blocked_networks[]": (net("blocked_networks: [10.1.2.3]"), lambda p: any(r[0] and r[1].startswith("10.1.2.3") for r in rules(p))),
    "policy.network.allowed_ports": (net("allowed_domains: [c.example.com], allowed_ports: [{port: 8443}]"), lambda p: (False, "c.example.com", 8443, 8443) in rules(p)),
    "policy.network.allowed_ports[]": (net("default_action: allow, allowed_ports: [{port: 443}]"), lambda p: {(True, "*", 1, 442), (True, "*", 444, 65535)} <= rules(p)),
    "policy.network.allowed_ports[].protocol": (net("allowed_domains: [d.example.com], allowed_ports: [{protocol: tcp, port: 77}]"), lambda p: (False, "d.example.com", 77, 77) in rules(p)),
    "policy.network.allowed_ports[].port": (net("allowed_domains: [e.example.com], allowed_ports: [{port: 78}]"), lambda p: (False, "e.example.com", 78, 78) in rules(p)),
    "policy.network.dns": (net("dns: {queries_per_minute: 11}"), lambda p: p["net"]["dns_queries"] == 11),
    "policy.network.dns.allowed_record_types": (net("dns: {allowed_record_types: [A, AAAA, TXT]}"), lambda p: p["net"]["dns_types"] == ["TXT"]),
    "policy.network.dns.allowed_record_types[]": (net("dns: {allowed_record_types: [A, AAAA, MX]}"), lambda p: p["net"]["dns_types"] == ["MX"]),
    "policy.network.dns.queries_per_minute": (net("dns: {queries_per_minute: 12}"), lambda p: p["net"]["dns_queries"] == 12),
    "policy.network.dns.new_names_per_minute": (net("dns: {new_names_per_minute: 13}"), lambda p: p["net"]["dns_new_names"] == 13),
    "policy.network.host_ports": (net("host_ports: [5432]"), lambda p: (False, "host.sendbox.internal", 5432, 5432) in rules(p)),
    "policy.network.host_ports[]": (net("host_ports: [5433, 5434]"), lambda p: (False, "host.sendbox.internal", 5434, 5434) in rules(p)),
    "policy.network.proxy_env": (net("proxy_env: true"), lambda p: p["net"]["proxy_env"] and "HTTPS_PROXY" in env_names(p)),
    "policy.network.strict_cname": (net("strict_cname: true"), lambda p: p["net"]["cname_strict"]),
    "policy.network.allow_ech": (net("allow_ech: true"), lambda p: p["net"]["ech_outer"]),
    "policy.network.idle_timeout": (net("idle_timeout: 5s"), lambda p: p["net"]["idle_ms"] == 5000),
    "policy.network.session_mb": (net("session_mb: 3"), lambda p: p["net"]["session_bytes"] == 3 * MB),
    "policy.network.host_mb": (net("host_mb: 2"), lambda p: p["net"]["host_bytes"] == 2 * MB),
    "policy.boundaries": ("policy: {boundaries: {syscalls: {additional_denylist: [mknod]}}}", lambda p: p["deny_syscalls"] == ["mknod"]),
    "policy.boundaries.syscalls": ("policy: {boundaries: {syscalls: {additional_denylist: [mknod]}}}", lambda p: p["deny_syscalls"] == ["mknod"]),
    "policy.boundaries.syscalls.additional_denylist": ("policy: {boundaries: {syscalls: {additional_denylist: [symlink, mknod]}}}", lambda p: p["deny_syscalls"] == ["mknod", "symlink"]),
    "policy.boundaries.syscalls.additional_denylist[]": ("policy: {boundaries: {syscalls: {additional_denylist: [chroot]}}}", lambda p: p["deny_syscalls"] == ["chroot"]),
    "policy.boundaries.syscalls.log_blocked": ("policy: {boundaries: {syscalls: {log_blocked: true}}}", lambda p: p["log_blocked"]),
    "groups": ("groups: {mine: [g.example.com]}\n" + net("allowed_domains: [mine]"), lambda p: (False, "g.example.com", 443, 443) in rules(p)),
    "groups.*": ("groups: {ours: [h.example.com]}\n" + net("blocked_domains: [ours]"), lambda p: (True, "h.example.com", 1, 65535) in rules(p)),
    "groups.*[]": ("groups: {two: [i.example.com, \"j.example.com:1\"]}\n" + net("allowed_domains: [two]"), lambda p: (False, "j.example.com", 1, 1) in rules(p)),
    "project_path": ("project_path: a", lambda p: any(m["host"] == project + "/a" and m["mode"] == "rw" for m in p["mounts"])),
}
for name, action in (("allowlist", "allow"), ("denylist", "deny"), ("rules", "log")):
    key = "policy.commands." + name
    need = "action: log, " if name == "rules" else ""
    PLAN[key] = (commands("%s: [{%srun: \"one **\"}]" % (name, need)), lambda p, a=action: command(p, "one **").get("action") == a)
    PLAN[key + "[]"] = PLAN[key]
    PLAN[key + "[].run"] = (commands("%s: [{%srun: \"two **\"}]" % (name, need)), lambda p: command(p, "two **") != {})
    PLAN[key + "[].scope"] = (commands("%s: [{%srun: three, scope: top_level}]" % (name, need)), lambda p: command(p, "three").get("scope") == "top_level")
    PLAN[key + "[].any_order"] = (commands("%s: [{%srun: \"git push -f **\", any_order: true}]" % (name, need)), lambda p: command(p, "git push -f **").get("any_order"))
    PLAN[key + "[].reason"] = (commands("%s: [{%srun: four, reason: because}]" % (name, need)), lambda p: command(p, "four").get("reason") == "because")
    PLAN[key + "[].action"] = (commands("%s: [{action: %s, run: five}]" % (name, action)), lambda p, a=action: command(p, "five").get("action") == a)
if vm:
    PLAN["resources.quota_mb"] = ("resources: {quota_mb: 33}", lambda p: p["mounts"][0]["quota_bytes"] == 33 * MB)
    PLAN["resources.quota_files"] = ("resources: {quota_files: 44}", lambda p: p["mounts"][0]["quota_inodes"] == 44)
PLAN["runtime.image"] = ("runtime: {image: \"dir:%s/a\"}" % project, lambda p: p["image"] == "dir" and p["image_path"] == project + "/a")

# What is not in a plan. (command, snippet, exit status, text of stdout and stderr together)
OTHER = {
    "agent": (["run", "--config", "@", "--trust-config", "--runtime", provider, "--image", "host", "--no-agent-mounts", "--dry-run"], "agent: shell", 0, r'\\"argv\\":\[\\"bash\\",\\"-l\\"\]'),
    "schema_version": (["config", "check", "--config", "@"], "schema_version: 2", 2, "schema_version"),
    "name": (["policy", "check", "--json", "--config", "@"], "name: keys-name", 0, '"sandbox":"keys-name"'),
    "extends": (["config", "explain", "timeout", "--config", "@"], "extends: outer.yaml", 0, r"outer\.yaml:1 \(organisation\)"),
    "locked": (["config", "check", "--config", "@"], "extends: locked.yaml\ntimeout: 2", 2, "lock"),
    "policy_tests": (["policy", "check", "--config", "@"], "policy_tests: [{run: ls, expect: deny}]", 1, "expected deny, got allow"),
    "policy_tests[]": (["policy", "check", "--config", "@"], "policy_tests: [{run: ls, expect: allow}]", 0, "1 tests, 0 failed"),
    "policy_tests[].run": (["policy", "check", "--config", "@"], commands("denylist: [\"ls -l\"]") + "\npolicy_tests: [{run: \"ls -l\", expect: allow}]", 1, "expected allow, got deny"),
    "policy_tests[].run[]": (["policy", "check", "--config", "@"], commands("denylist: [\"ls a\\\\ b\"]") + "\npolicy_tests: [{run: [ls, \"a b\"], expect: allow}]", 1, "expected allow, got deny"),
    "policy_tests[].connect": (["policy", "check", "--config", "@"], "policy_tests: [{connect: \"a.example.com:443\", expect: allow}]", 1, "expected allow, got deny"),
    "policy_tests[].expect": (["policy", "check", "--config", "@"], "policy_tests: [{run: ls, expect: log}]", 1, "expected log, got allow"),
    "policy_tests[].rule": (["policy", "check", "--config", "@"], commands("denylist: [\"ls **\"]") + "\npolicy_tests: [{run: ls, expect: deny, rule: other}]", 1, "expected deny by other"),
}
# Snapshots are the host's: the same for both runtimes.
RUN = ["run", "--config", "@", "--trust-config", "--runtime", "namespace", "--", "sh", "-c"]
OTHER["guarded_paths.changed"] = (RUN + ["echo x >q.mk"], "guarded_paths: {changed: quarantine}", 0, "in quarantine")
OTHER["snapshots"] = (RUN + ["echo x >r.mk"], "snapshots: {enabled: true}", 0, "A r.mk")
OTHER["snapshots.enabled"] = (RUN + ["echo x >s.mk"], "snapshots: {enabled: false}", 0, r"(?s)\A(?!.*s\.mk)")
DIFF = ["diff", "--names"]
OTHER["snapshots.exclude"] = (RUN + ["echo x >t.one; echo x >u.one"], "snapshots: {exclude: [\"t.*\"]}", 0, r"(?s)\A(?!.*A t\.one).*A u\.one", DIFF)
OTHER["snapshots.exclude[]"] = (RUN + ["echo x >v.one; echo x >w.one"], "snapshots: {exclude: [v.one]}", 0, r"(?s)\A(?!.*A v\.one).*A w\.one", DIFF)
# Retention is the host's, too.
GC = ["gc", "--retention", "--config", "@"]
OTHER["retention.sessions"] = (GC, "retention: {sessions: 1}", 0, "old sessions? forgotten")
OTHER["retention.max_age"] = (GC, "retention: {max_age: 1s}", 0, "old sessions? forgotten")
OTHER["retention.snapshots_mb"] = (GC, "retention: {snapshots_mb: 4k}", 0, "old sessions? forgotten")
OTHER["retention"] = OTHER["retention.sessions"]
# What approvals do shows in 61-approvals; here: each key's value is known, and another is refused.
for key, good, wrong in (("mode", "wait", "maybe"), ("timeout", "5s", "100d"), ("questions", "3", "-1"), ("rate", "3", "0"),
                         ("session_grants", "false", "2"), ("pattern_grants", "false", "2"), ("forever_grants", "false", "2"),
                         ("grant_expiry", "2h", "1s"), ("grant_uses", "4", "-1"), ("hook", "[/bin/true]", "x"), ("hook_timeout", "2s", "2h")):
    OTHER["approvals." + key] = (["config", "check", "--config", "@"], "approvals: {%s: %s}" % (key, wrong), 2, "approvals." + key)
ASKS = commands("scope: top_level, allowlist: [{run: \"true **\", action: ask}]")
OTHER["approvals"] = (["run", "--config", "@", "--trust-config", "--runtime", provider, "--", "true"], "approvals: {mode: never}\n" + ASKS, 120, "approvals-off")
OTHER["approvals.mode"] = OTHER["approvals"]
PUBLISH = ["config", "check", "--config", "@"]  # what it does shows in 59-audit
for key, text in (("", "[{print: true}]"), ("[]", "[{print: true}]"), ("[].file", "[{file: /x/heads}]"), ("[].command", "[{command: [/bin/true]}]"),
                  ("[].command[]", "[{command: [/bin/true, a]}]"), ("[].print", "[{print: true}]")):
    OTHER["audit.publish" + key] = (PUBLISH, "audit: {publish: %s}" % text, 2, "your own configuration")
OTHER["audit"] = OTHER["audit.publish"]
OTHER["approvals.hook[]"] = (["config", "check", "--config", "@"], "approvals: {hook: [/bin/true]}", 2, "your own configuration")
if not vm:
    for key, text in (("resources.quota_mb", "resources: {quota_mb: 3}\nruntime: {provider: namespace}"),
                      ("resources.quota_files", "resources: {quota_files: 3}\nruntime: {provider: namespace}"),
                      ("runtime.accel", "runtime: {provider: namespace, accel: tcg}"),
                      ("runtime.kernel", "runtime: {provider: namespace, kernel: /k}")):
        OTHER[key] = (["run", "--config", "@", "--trust-config", "--dry-run", "--", "true"], text, 2, "microvm runtime only")
else:
    OTHER["runtime.kernel"] = (["run", "--config", "@", "--trust-config", "--runtime", provider, "--dry-run", "--", "true"], "runtime: {kernel: no-such-kernel}", 121, "no-such-kernel")
    # the tests themselves say tcg by SENDBOX_ACCEL; a machine without KVM refuses, one with it plans it
    OTHER["runtime.accel"] = (["run", "--config", "@", "--trust-config", "--runtime", provider, "--dry-run", "--", "true"], "runtime: {accel: kvm}", None, "KVM|kvm")

# Values that ask for something that is not there yet; keys whose every value is neutral alone are
# covered by the key that they belong to.
LATER = {
    "devcontainer.auto_generate": "devcontainer: {auto_generate: true}",
    "devcontainer.config_path": "devcontainer: {config_path: x}",
    "devcontainer.extensions": "devcontainer: {extensions: [x]}",
    "github.allow_private_repository_access": "github: {allow_private_repository_access: true}",
    "github.branch_protection.enabled": "github: {branch_protection: {enabled: true}}",
    "github.forward_auth": "github: {forward_auth: true}",
    "github.forward_copilot_auth": "github: {forward_copilot_auth: true}",
    "github.safe_outputs.enabled": "github: {safe_outputs: {enabled: true}}",
    "github.ssh_key_path": "github: {ssh_key_path: /k}",
    "observability.mcp_inspection.enabled": "observability: {mcp_inspection: {enabled: true}}",
    "policy.boundaries.enabled": "policy: {boundaries: {enabled: false}}",
    "policy.boundaries.log_path": "policy: {boundaries: {log_path: /var/log/sendbox/other.log}}",
    "policy.packages.enabled": "policy: {packages: {enabled: true}}",
    "secrets": "secrets: [TOKEN]",
    "runtime.kata": "runtime: {provider: kata, kata: {namespace: x}}",
    "runtime.hyperlight": "runtime: {provider: hyperlight, hyperlight: {stack_mb: 8}}",
}
for key, text in (("allowed_server_commands", "[a]"), ("allowlist", "[a]"), ("denylist", "[a]"), ("default_action", "allow"), ("servers", "{a: {transport: stdio}}")):
    LATER["policy.boundaries.tool_calls." + key] = "policy: {boundaries: {tool_calls: {%s: %s}}}" % (key, text)
for key in ("max_dynamic_labels", "max_octets", "max_queries", "max_unique_names", "window_secs"):
    LATER["policy.network.dns.budget." + key] = net("dns: {budget: {%s: 7}}" % key)
for key in ("max_label_octets", "max_labels", "max_qname_octets", "max_response_records", "max_ttl_secs"):
    LATER["policy.network.dns." + key] = net("dns: {%s: 7}" % key)


def listed():
    """Whether the caller stands in the list of users: ssh-keygen serves nobody else."""
    try:
        return bool(pwd.getpwuid(os.geteuid()))
    except KeyError:
        return False


def row_plan(key):
    text, check = PLAN[key]
    if key in ("ssh_agent.hosts", "ssh_agent.hosts[]") and not listed():
        code, _, err = call(["run", "--config", "@", "--trust-config", "--dry-run", "--", "true"], text)
        return told(code == 2 and "list of users" in err, f"{key} is refused without an entry in the list of users", err)
    try:
        without = plan("{}")
        got = plan(text)
    except RuntimeError as e:
        return told(False, key, e)
    told(check(got) and not check(without), f"{key} changes the plan",
         "with: " + str(bool(check(got))), "without: " + str(bool(check(without))), text)


def row_other(key):
    args, text, status, pattern, *then = OTHER[key] # then: a command that shows what came of it
    for _ in range(2 if key.startswith("retention") else 0): # there are some to be forgotten
        call(["run", "--runtime", "namespace", "--no-config", "--", "sleep", "1"])
    code, out, err = call(args, text)
    for more in then:
        out += call(more)[1]
    told(status in (None, code) and re.search(pattern, out + err), f"{key} acts", f"exit {code}", out, err, text)


def row_later(key):
    code, out, err = call(["run", "--config", "@", "--trust-config", "--runtime", provider, "--dry-run",
                           "--", "true"], LATER[key])
    told(code == 2 and "not available yet" in err and ".yaml:1" in err, f"{key} is refused: not available yet", f"exit {code}", err)


def neutral_alone(key, keys):
    """Nothing is asked by it alone; a key beneath the same part that is not there yet asks, and has
    a row."""
    parts = key.replace("[]", "").split(".")
    tops = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    top = next(t for t in tops if keys.get(t, ("",))[0] == "later")
    return any(k == top or k.startswith(top + ".") for k in LATER)


def nested(path, value):
    """"a.b[]" with 5 as "a: {b: [5]}"; the other members that a list's maps need are there."""
    parts = path.replace("[]", ".[]").split(".")
    text = value
    for part in reversed(parts):
        text = "[%s]" % text if part == "[]" else "{%s: %s}" % (part, text)
    return text


NET = {"max_connections": "max_connections", "idle_timeout": "idle_ms", "session_mb": "session_bytes",
       "host_mb": "host_bytes", "dns.queries_per_minute": "dns_queries",
       "dns.new_names_per_minute": "dns_new_names"}
LIMIT = {"fsize_mb": "fsize", "as_mb": "as", "data_mb": "data", "stack_mb": "stack", "cpu_secs": "cpu",
         "memlock_mb": "memlock"}
IN_PLAN = {
    "resources.cpus": lambda p, v: p["cpus"], "resources.memory_mb": lambda p, v: p["memory"],
    "resources.disk_size_mb": lambda p, v: p["disk"], "resources.pids": lambda p, v: p["pids_max"],
    "resources.quota_mb": lambda p, v: p["mounts"][0]["quota_bytes"],
    "resources.quota_files": lambda p, v: p["mounts"][0]["quota_inodes"],
    "resources.rlimits.nofile": lambda p, v: p["nofile"], "timeout": lambda p, v: p["timeout_ms"],
    "uid": lambda p, v: p["uid"],
    "policy.network.allowed_ports[].port": lambda p, v: v if (False, "a.example.com", v, v) in rules(p) else None,
    "policy.network.host_ports[]": lambda p, v: v if (False, "host.sendbox.internal", v, v) in rules(p) else None,
}
for name, member in NET.items():
    IN_PLAN["policy.network." + name] = lambda p, v, m=member: p["net"][m]
for name, member in LIMIT.items():
    IN_PLAN["resources.rlimits." + name] = lambda p, v, m=member: p["rlimits"][m]
HOST_ONLY = ("retention", "approvals", "audit", "snapshots")
ALONG = {"policy.network.allowed_ports[].port": "policy: {network: {allowed_domains: [a.example.com], allowed_ports: [{port: %s}]}}"}


def row_bound(path, written, value):
    """What a key's own range admits reaches the plan as it is, or is refused already by check."""
    text = ALONG[path] % written if path in ALONG else nested(path, written)
    if "runtime" not in text:
        text = text.replace("{", "{runtime: {provider: %s}, " % provider, 1) if text.startswith("{") else "runtime: {provider: %s}\n%s" % (provider, text)
    code, out, err = call(["config", "check", "--config", "@"], text)
    ran, planned, why = call(["run", "--config", "@", "--trust-config", "--dry-run", "--", "true"], text)
    name = f"{path}: {written}"
    if path.split(".")[0] in HOST_ONLY:
        return told(code == ran == 0, name + " is taken; it is no part of a plan", text, err, why)
    if code != 0 or ran != 0:
        return told(code == ran == 2 and path in err + path and len(err) > 20, name + " is refused by check and by run", text, code, err, ran, why)
    got = IN_PLAN.get(path, lambda p, v: None)(json.loads(json.loads(planned)["plan"]), value)
    told(got is not None and int(got) == value, name + " reaches the plan", text, got)


with open(project + "/outer.yaml", "w") as f:
    f.write("timeout: 44\n")
with open(project + "/locked.yaml", "w") as f:
    f.write("locked: true\ntimeout: 1\n")
for name in ("outer.yaml", "locked.yaml"):
    os.chmod(project + "/" + name, 0o600)
keys = {}
for line in open(work + "/keys"):
    path, state, neutral = line.rstrip("\n").split("\t")
    keys.setdefault(path, (state, neutral))
for key, (state, neutral) in keys.items():
    if key in PLAN:
        row_plan(key)
    elif key in OTHER:
        row_other(key)
    elif key in LATER:
        row_later(key)
    elif state == "later" and (neutral == "*" or key.endswith("[]")):
        told(neutral_alone(key, keys), f"{key} asks for nothing alone")
    else:
        told(False, f"{key} has a row in keys.py")
for line in open(work + "/bounds"):
    path, written, value = line.rstrip("\n").split("\t")
    row_bound(path, written, int(value))
for key in (PLAN.keys() | OTHER.keys() | LATER.keys()) - keys.keys():
    told(False, f"{key} is a key")
print(f"1..{count}")
