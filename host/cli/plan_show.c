#include "plan_show.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/num.h"

void plan_put(FILE *to, const char *s)
{
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c >= 0x7f)
			(void)fprintf(to, "\\x%02x", c);
		else
			(void)fputc(c, to);
	}
}

void plan_time_text(uint64_t unix_s, char out[PLAN_TIME_ROOM])
{
	time_t t = (time_t)unix_s;
	struct tm tm;

	if (unix_s > INT64_MAX || !gmtime_r(&t, &tm) ||
	    strftime(out, PLAN_TIME_ROOM, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		(void)snprintf(out, PLAN_TIME_ROOM, "%" PRIu64, unix_s);
}

static void label(FILE *to, const char *name)
{
	(void)fprintf(to, "%-13s ", name);
}

static void line(FILE *to, const char *name, const char *value)
{
	label(to, name);
	plan_put(to, value);
	(void)fputc('\n', to);
}

static void hex_line(FILE *to, const char *name, const uint8_t *p, size_t len)
{
	char hex[129];

	sb_assert(len <= 64);
	sb_hex_write(p, len, hex);
	line(to, name, hex);
}

static void amount(FILE *to, uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t i = 0;

	while (bytes >= 1024 && bytes % 1024 == 0 && i + 1 < SB_ARRAY_LEN(unit)) {
		bytes /= 1024;
		i++;
	}
	(void)fprintf(to, "%" PRIu64 " %s", bytes, unit[i]);
}

/* A word as a shell would need it. */
static void word(FILE *to, const char *s)
{
	bool plain = *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_-+=./:,@%")] == '\0';

	if (!plain)
		(void)fputc('\'', to);
	for (; *s; s++) {
		char one[2] = { *s, '\0' };

		if (*s == '\'')
			(void)fputs("'\\''", to);
		else
			plan_put(to, one);
	}
	if (!plain)
		(void)fputc('\'', to);
}

static void from(FILE *to, const char *where)
{
	if (where && *where) {
		(void)fputs("   (", to);
		plan_put(to, where);
		(void)fputc(')', to);
	}
	(void)fputc('\n', to);
}

static void show_command(FILE *to, const struct sb_plan *p)
{
	label(to, "runs");
	if (p->task == SB_TASK_EXPORT) {
		(void)fputs("nothing: what was written to the upper layer is given out\n", to);
		return;
	}
	for (size_t i = 0; p->argv[i]; i++) {
		if (i > 0)
			(void)fputc(' ', to);
		word(to, p->argv[i]);
	}
	(void)fputc('\n', to);
	line(to, "in", p->cwd);
	label(to, "as");
	plan_put(to, p->user);
	(void)fprintf(to, " (%u:%u)%s\n", p->uid, p->gid,
		      p->test_root ? ", ROOT OF THE GUEST (for tests)"
		      : p->builder ? ", root of its own guest, to install programs" : "");
	label(to, "environment");
	for (size_t i = 0; i < p->n_env; i++) {
		(void)fputs(i > 0 ? " " : "", to);
		plan_put(to, p->env[i].name);
	}
	(void)fputs(p->n_env ? " (values by digest)\n" : "none\n", to);
}

static void show_root(FILE *to, const struct sb_plan *p)
{
	char hex[65];

	line(to, "image", p->image == SB_IMAGE_HOST	? "the host's /usr"
			  : p->image == SB_IMAGE_LAYERS ? "the layers"
							: p->image_path);
	for (size_t i = 0; i < p->n_layers; i++) {
		label(to, i == 0 ? "layers" : "");
		sb_hex_write(p->layers[i].sha256, 32, hex);
		(void)fprintf(to, "%.16s ", hex);
		plan_put(to, p->layers[i].path);
		(void)fputc('\n', to);
	}
	line(to, "changes go to", p->upper.kind == SB_UPPER_TMPFS ? "memory, gone with the session"
							      : p->upper.path);
	if (p->instance)
		line(to, "instance", p->instance);
}

static void show_runtime(FILE *to, const struct sb_plan *p)
{
	static const char *const accel[] = { "", " with KVM", " under emulation (TCG)" };

	label(to, "runtime");
	(void)fprintf(to, "%s%s: ", p->provider == SB_PROVIDER_MICROVM ? "microvm" : "namespace",
		      accel[p->accel <= SB_ACCEL_TCG ? p->accel : 0]);
	plan_put(to, p->provider_reason);
	(void)fputc('\n', to);
	for (size_t i = 0; p->rejected && p->rejected[i]; i++)
		line(to, "  not", p->rejected[i]);
	show_root(to, p);
	if (p->kernel_release) {
		line(to, "kernel", p->kernel_release);
		hex_line(to, "", p->kernel_sha256, sizeof(p->kernel_sha256));
	}
}

static void show_files(FILE *to, const struct sb_plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct sb_plan_mount *m = &p->mounts[i];

		label(to, i == 0 ? "files" : "");
		(void)fputs(m->mode == SB_MOUNT_RW ? "read-write " : "read-only  ", to);
		plan_put(to, m->host);
		if (strcmp(m->host, m->guest) != 0) {
			(void)fputs(" at ", to);
			plan_put(to, m->guest);
		}
		if (m->quota_bytes) {
			(void)fputs(", at most ", to);
			amount(to, m->quota_bytes);
			(void)fputs(" more", to);
		}
		if (m->quota_inodes)
			(void)fprintf(to, ", at most %" PRIu64 " files more", m->quota_inodes);
		(void)fputc('\n', to);
	}
	for (size_t i = 0; i < p->n_guards; i++) {
		label(to, i == 0 ? "guarded" : "");
		(void)fprintf(to, "%-10s ", sb_plan_guard_name(p->guards[i].mode));
		plan_put(to, p->guards[i].path);
		(void)fputc('\n', to);
	}
}

static void show_rule(FILE *to, const struct sb_net_rule *r, const char *action)
{
	static const char *const proto[] = { "", " https", " http", " any protocol" };

	label(to, "");
	(void)fputs(action, to);
	plan_put(to, r->host);
	if (r->port_lo == r->port_hi)
		(void)fprintf(to, ":%u", r->port_lo);
	else if (r->port_lo != 1 || r->port_hi != 65535)
		(void)fprintf(to, ":%u-%u", r->port_lo, r->port_hi);
	(void)fputs(proto[(size_t)r->proto < SB_ARRAY_LEN(proto) ? r->proto : 0], to);
	from(to, r->from);
}

static void show_network(FILE *to, const struct sb_plan *p)
{
	static const char *const mode[] = { "none: nothing leaves", "only what is allowed",
					    "every public name and address" };
	const struct sb_plan_net *n = &p->net;

	line(to, "network", mode[n->mode <= SB_NET_OPEN ? n->mode : 0]);
	if (n->mode == SB_NET_FILTER && n->n_rules == 0)
		line(to, "", "nothing is allowed");
	for (size_t i = 0; i < n->n_rules; i++)
		show_rule(to, &n->rules[i], n->rules[i].deny ? "deny  " : "allow ");
	for (size_t i = 0; i < n->n_ask; i++)
		show_rule(to, &n->ask[i], "ask   ");
	if (n->mode == SB_NET_NONE)
		return;
	label(to, "");
	(void)fprintf(to, "at most %u connections at once", n->max_connections);
	if (n->session_bytes) {
		(void)fputs(", ", to);
		amount(to, n->session_bytes);
		(void)fputs(" in all", to);
	}
	if (n->host_bytes) {
		(void)fputs(", ", to);
		amount(to, n->host_bytes);
		(void)fputs(" for each name", to);
	}
	(void)fputc('\n', to);
}

static void show_ssh(FILE *to, const struct sb_plan *p)
{
	char fp[SB_SSH_FINGERPRINT];

	for (size_t i = 0; i < p->ssh.n_keys; i++) {
		label(to, i == 0 ? "ssh keys" : "");
		sb_ssh_fingerprint(p->ssh.keys[i].sha256, fp);
		(void)fprintf(to, "%s ", fp);
		plan_put(to, p->ssh.keys[i].comment);
		(void)fputc('\n', to);
	}
	for (size_t i = 0; i < p->ssh.n_hosts; i++) {
		label(to, i == 0 ? "for hosts" : "");
		plan_put(to, p->ssh.hosts[i].name);
		sb_ssh_fingerprint(p->ssh.hosts[i].sha256, fp);
		(void)fprintf(to, " with %s\n", fp);
	}
	if (p->ssh.n_keys > 0 && p->ssh.n_hosts == 0)
		line(to, "for hosts", "any");
	if (p->ssh.sign_data)
		line(to, "", "also data (git commits, files)");
	if (p->ssh.ask)
		line(to, "", "each signature is asked for first");
}

static void show_commands(FILE *to, const struct sb_plan *p)
{
	static const char *const action[] = { "deny ", "allow", "log  ", "ask  " };
	const struct sb_plan_commands *c = &p->commands;

	label(to, "commands");
	if (c->scope == SB_CMD_SCOPE_NONE) {
		(void)fputs("any program of the image and the shared folders\n", to);
		return;
	}
	(void)fprintf(to, "%s; what no rule names: %s\n",
		      c->scope == SB_CMD_SCOPE_TREE ? "every program of the session is judged"
						    : "the command itself is judged",
		      c->fallback == SB_CMD_ALLOW ? "allow" : "deny");
	for (size_t i = 0; i < c->n_rules; i++) {
		const struct sb_cmd_rule *r = &c->rules[i];

		label(to, "");
		(void)fprintf(to, "%s ", action[(size_t)r->action < SB_ARRAY_LEN(action) ? r->action : 0]);
		plan_put(to, r->pattern);
		from(to, r->from);
	}
}

static void rlimit(FILE *to, const char *name, uint64_t v)
{
	if (v != SB_PLAN_NO_LIMIT)
		(void)fprintf(to, ", %s %" PRIu64, name, v);
}

static void show_limits(FILE *to, const struct sb_plan *p)
{
	label(to, "limits");
	(void)fprintf(to, "%u CPU%s, ", p->cpus, p->cpus == 1 ? "" : "s");
	if (p->memory_bytes) {
		amount(to, p->memory_bytes);
		(void)fputs(" memory, ", to);
	}
	amount(to, p->disk_bytes);
	(void)fprintf(to, " writable layer, %u processes, %" PRIu64 " open files", p->pids_max,
		      p->nofile);
	rlimit(to, "fsize", p->rlimits.fsize);
	rlimit(to, "as", p->rlimits.as);
	rlimit(to, "data", p->rlimits.data);
	rlimit(to, "stack", p->rlimits.stack);
	rlimit(to, "cpu seconds", p->rlimits.cpu);
	rlimit(to, "memlock", p->rlimits.memlock);
	if (p->timeout_ms)
		(void)fprintf(to, ", ends after %" PRIu64 ".%03u s", p->timeout_ms / 1000,
			      (unsigned int)(p->timeout_ms % 1000));
	(void)fputc('\n', to);
	label(to, "profile");
	(void)fputs(sb_plan_profile_name(p->profile), to);
	for (size_t i = 0; p->deny_syscalls && p->deny_syscalls[i]; i++) {
		(void)fputs(i == 0 ? "; also refused: " : " ", to);
		plan_put(to, p->deny_syscalls[i]);
	}
	(void)fputc('\n', to);
}

static bool is_reviewed(const struct sb_plan *p)
{
	for (size_t i = 0; i < sizeof(p->reviewed_sha256); i++)
		if (p->reviewed_sha256[i])
			return true;
	return false;
}

static void show_origin(FILE *to, const struct sb_plan *p)
{
	const bool reviewed = is_reviewed(p);
	char hex[65];

	for (size_t i = 0; i < p->n_features; i++) {
		const struct sb_plan_feature *f = &p->features[i];

		if (f->decision == SB_DECISION_NOT_ASKED)
			continue;
		label(to, i == 0 ? "enforced" : "");
		if (f->decision == SB_DECISION_REJECTED)
			(void)fputs("NOT ", to);
		plan_put(to, f->name);
		(void)fputs(": ", to);
		plan_put(to, f->mechanism);
		(void)fputc('\n', to);
	}
	for (size_t i = 0; i < p->n_parts; i++) {
		label(to, i == 0 ? "made from" : "");
		sb_hex_write(p->parts[i].sha256, 32, hex);
		(void)fprintf(to, "%.16s ", hex);
		plan_put(to, p->parts[i].role);
		(void)fputc(' ', to);
		plan_put(to, p->parts[i].path);
		/* run --plan does not read them again */
		if (reviewed && strncmp(p->parts[i].role, "config:", strlen("config:")) == 0)
			(void)fputs(" (of the reviewed plan)", to);
		(void)fputc('\n', to);
	}
	if (reviewed)
		hex_line(to, "reviewed as", p->reviewed_sha256, sizeof(p->reviewed_sha256));
	label(to, "guest");
	plan_put(to, p->bundle.origin);
	(void)fprintf(to, ", release %" PRIu64 "\n", p->bundle.sequence);
}

void plan_show(FILE *to, const struct sb_plan *p)
{
	char made[PLAN_TIME_ROOM];
	char ends[PLAN_TIME_ROOM];

	hex_line(to, "session", p->session, sizeof(p->session));
	plan_time_text(p->created_unix_s, made);
	plan_time_text(p->expires_unix_s, ends);
	(void)fprintf(to, "%-13s %s by sendbox ", "made", made);
	plan_put(to, p->host_version);
	(void)fprintf(to, ", to be started before %s\n", ends);
	show_command(to, p);
	show_runtime(to, p);
	show_files(to, p);
	show_network(to, p);
	show_ssh(to, p);
	show_commands(to, p);
	show_limits(to, p);
	show_origin(to, p);
}
