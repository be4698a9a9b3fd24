#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "bundle_local.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "options.h"

static const char *const words[] = { "fail", "warn", "ok" };

static json_t *probe_json(const struct sb_provider *p, const struct sb_probe *probe)
{
	json_t *checks = json_array();

	for (size_t i = 0; i < probe->n_checks; i++) {
		const struct sb_check *c = &probe->checks[i];

		(void)json_array_append_new(checks,
					    json_pack("{s:s,s:s,s:s,s:s}", "name", c->name, "state",
						      words[c->state], "found", c->found, "remedy",
						      c->remedy));
	}
	return json_pack("{s:s,s:b,s:b,s:o}", "name", p->name, "ready", probe->ready, "vm", p->is_vm,
			 "checks", checks);
}

static void probe_text(const struct sb_provider *p, const struct sb_probe *probe)
{
	printf("%s: %s\n", p->name, probe->ready ? "ready" : "NOT READY");
	for (size_t i = 0; i < probe->n_checks; i++) {
		const struct sb_check *c = &probe->checks[i];

		printf("  %-4s  %-16s %s\n", words[c->state], c->name, c->found);
		if (c->state != SB_CHECK_OK && c->remedy[0])
			printf("        -> %s\n", c->remedy);
	}
}

/* Every runtime starts its guest from the bundle: opened and verified as a start does it. */
static void probe_bundle(const struct sb_dirs *d, struct sb_probe *p)
{
	static const char remedy[] = "install sendbox anew, or see sendbox bundle verify";
	uint8_t pub[32];
	uint8_t sec[64];
	struct sb_err err = { 0 };
	sb_autobundle struct sb_bundle *b = NULL;
	int r = cli_host_key(d, pub, sec, &err);

	if (r == 0)
		r = cli_bundle_open(d, pub, sec, &b, &err);
	sb_wipe(sec, sizeof(sec));
	if (r < 0) {
		sb_probe_add(p, "guest bundle", SB_CHECK_FAIL, remedy, "%.190s",
			     err.code ? err.text : strerror(-r));
		p->ready = false;
		return;
	}
	if (memcmp(b->key, pub, sizeof(pub)) == 0)
		sb_probe_add(p, "guest bundle", SB_CHECK_OK, "", BUNDLE_LOCAL ", signed with this host's key");
	else
		sb_probe_add(p, "guest bundle", SB_CHECK_OK, "", "release %.60s, sequence %llu, signature valid",
			     b->m.release, (unsigned long long)b->m.sequence);
}

int cmd_doctor(int argc, char **argv)
{
	enum { O_JSON = 1, O_ACCEL, O_KERNEL, O_HELP };
	static const struct cli_option table[] = {
		{ "json", 0, NULL, "as one JSON object", O_JSON },
		{ "accel", 0, "NAME", "auto, kvm or tcg: what the micro-VM shall use", O_ACCEL },
		{ "kernel", 'k', "PATH", "check this guest kernel", O_KERNEL },
		{ "help", 'h', NULL, "this text", O_HELP },
	};
	const char *accel = getenv("SENDBOX_ACCEL");
	const char *kernel = NULL;
	struct cli_dirs dirs;
	struct sb_err err = { 0 };
	const char *value;
	bool dashes;
	bool json = false;
	bool all_ready = true;
	json_t *list = NULL;
	enum sb_accel want = SB_ACCEL_NONE;
	int at = 0;
	int id;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      &err)) > 0) {
		if (id == O_HELP) {
			printf("usage: sendbox doctor [options]\n\nTell for each runtime whether "
			       "this machine is ready, or what makes it so.\n\n");
			cli_options_help(table, SB_ARRAY_LEN(table));
			return SB_EXIT_OK;
		}
		if (id == O_JSON)
			json = true;
		else if (id == O_ACCEL)
			accel = value;
		else
			kernel = value;
	}
	if (id < 0 || at < argc) {
		cli_error("%s", id < 0 ? err.text : "doctor takes no operands");
		return SB_EXIT_USAGE;
	}
	if (accel && strcmp(accel, "tcg") == 0)
		want = SB_ACCEL_TCG;
	else if (accel && strcmp(accel, "kvm") == 0)
		want = SB_ACCEL_KVM;
	else if (accel && strcmp(accel, "auto") != 0) {
		cli_error("--accel \"%.60s\": must be auto, kvm or tcg", accel);
		return SB_EXIT_USAGE;
	}
	if (sb_crypto_init() < 0 || cli_dirs_init(&dirs, &err) < 0) {
		cli_error("%s", err.code ? err.text : "no crypto library");
		return SB_EXIT_INTERNAL;
	}
	if (json)
		list = json_array();
	for (int i = SB_PROVIDER_MICROVM; i <= SB_PROVIDER_NAMESPACE; i++) {
		const struct sb_provider *p = sb_provider_get((enum sb_provider_id)i);
		struct sb_probe *probe = p ? calloc(1, sizeof(*probe)) : NULL;

		if (!probe)
			continue;
		p->probe(&dirs.d, p->is_vm ? want : SB_ACCEL_NONE, p->is_vm ? kernel : NULL, probe);
		probe_bundle(&dirs.d, probe);
		all_ready = all_ready && probe->ready;
		if (json)
			(void)json_array_append_new(list, probe_json(p, probe));
		else
			probe_text(p, probe);
		free(probe);
	}
	if (json) {
		json_t *o = json_pack("{s:i,s:s,s:o}", "schema_version", 1, "version", SB_VERSION,
				      "runtimes", list);
		char *s = o ? json_dumps(o, JSON_COMPACT) : NULL;

		if (s)
			(void)puts(s);
		free(s);
		json_decref(o);
	}
	return all_ready ? SB_EXIT_OK : 1;
}
