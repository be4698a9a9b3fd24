/* What a text of the configuration must be, by the parsers that the plan uses. */
#include <errno.h>
#include <idn2.h>
#include <stdio.h>
#include <string.h>

#include "cfg_i.h"
#include "core/cmd_policy.h"
#include "core/net_policy.h"
#include "core/plan.h"
#include "core/syscalls.h"
#include "image/ref.h"
#include "wire/dns.h"

const char *const cfg_groups[] = { "npm", "pypi", "debian", "crates", "go", "github", NULL };

static bool bad(struct check *c, const struct doc_node *n, const char *why)
{
	check_problem(c, n, "bad_value", "\"%.200s\": %s", n->text, why);
	return false;
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

/* ---- network ---- */

static bool in_words(const char *const *words, const char *s)
{
	for (; *words; words++)
		if (strcmp(*words, s) == 0)
			return true;
	return false;
}

struct found { /* the rules that one text makes */
	const char *never;
	uint16_t lo;
	uint16_t hi;
	size_t n;
	bool wild;
};

static void last_address(const struct sb_cidr *c, struct sb_addr *ret)
{
	*ret = c->addr;
	for (unsigned int bit = c->bits; bit < 128; bit++)
		ret->b[bit / 8] = (uint8_t)(ret->b[bit / 8] | 0x80U >> bit % 8);
}

/* Why no rule can ever open it; NULL = it can. */
static const char *never(const char *host)
{
	size_t n = strlen(host);
	enum sb_addr_class class;
	struct sb_addr last;
	struct sb_cidr c;

	if (strcmp(host, "localhost") == 0 || (n > 10 && strcmp(host + n - 10, ".localhost") == 0))
		return "can never be allowed: it is the sandbox itself; for a server of this host use "
		       "policy.network.host_ports";
	if (sb_cidr_parse(host, n, &c) < 0)
		return NULL;
	class = sb_addr_classify(&c.addr);
	last_address(&c, &last);
	if (sb_addr_classify(&last) != class)
		return NULL;
	if (class == SB_ADDR_LOOPBACK)
		return "can never be allowed: it is the sandbox's own loopback; for a server of this "
		       "host use policy.network.host_ports";
	if (class == SB_ADDR_METADATA)
		return "can never be allowed: it is a cloud metadata service";
	if (class == SB_ADDR_MULTICAST)
		return "can never be allowed: multicast and broadcast do not leave a sandbox";
	return class == SB_ADDR_UNSPECIFIED ? "can never be allowed: it is no address of a server"
					    : NULL;
}

static int on_rule(void *arg, const struct sb_net_rule *r)
{
	struct found *f = arg;

	if (!r->deny && !f->never)
		f->never = never(r->host);
	f->lo = r->port_lo;
	f->hi = r->port_hi;
	f->wild = r->host[0] == '*';
	f->n++;
	return 0;
}

/* A name with other letters in the form that programs ask for (IDNA 2008). */
static int to_ascii(const char *text, char *out, size_t cap)
{
	const char *name = strncmp(text, "*.", 2) == 0 ? text + 2 : text;
	size_t len = strcspn(name, ":/");
	sb_autofree char *host = NULL;
	char only[1025];

	if (len >= sizeof(only))
		return -EINVAL;
	memcpy(only, name, len);
	only[len] = '\0';
	if (idn2_to_ascii_8z(only, &host, IDN2_NONTRANSITIONAL) != IDN2_OK)
		return -EINVAL;
	out[0] = '\0';
	return text_append(out, cap, text, (size_t)(name - text)) &&
			       text_append(out, cap, host, strlen(host)) &&
			       text_append(out, cap, name + len, strlen(name + len))
		       ? 0
		       : -EINVAL;
}

static bool parse_rule(struct check *c, const struct doc_node *n, bool deny, struct found *f)
{
	struct sb_err err = { 0 };
	const char *text = n->text;
	char ascii[2048];

	for (const char *p = text; *p; p++) {
		if ((unsigned char)*p < 0x80)
			continue;
		if (to_ascii(text, ascii, sizeof(ascii)) < 0)
			return bad(c, n, "the name cannot be written in ASCII (IDNA)");
		text = ascii;
		break;
	}
	if (sb_net_rule_parse(text, strlen(text), deny, c->path, on_rule, f, &err) < 0) {
		check_problem(c, n, "bad_value", "%.500s", err.text[0] ? err.text : "no network rule");
		return false;
	}
	return !f->never || bad(c, n, f->never);
}

static bool check_rule(struct check *c, const struct doc_node *n, bool deny, bool in_group)
{
	struct found f = { 0 };

	if (in_words(cfg_groups, n->text))
		return !in_group || bad(c, n, "a group cannot hold a group");
	return parse_rule(c, n, deny, &f);
}

static bool check_network(struct check *c, const struct doc_node *n, bool deny)
{
	struct sb_cidr cidr;
	const char *why;

	if (sb_cidr_parse(n->text, n->len, &cidr) < 0)
		return bad(c, n, "neither an address nor a network such as 10.0.0.0/8 or fd00::/8 "
			   "(bits after the prefix must be 0)");
	why = deny ? NULL : never(n->text);
	return !why || bad(c, n, why);
}

static bool check_connect(struct check *c, const struct doc_node *n)
{
	struct found f = { 0 };

	if (!parse_rule(c, n, true, &f))
		return false;
	if (f.n != 1 || f.lo != f.hi || f.wild)
		return bad(c, n, "must be NAME:PORT or ADDRESS:PORT");
	return true;
}

static bool check_dns_type(struct check *c, const struct doc_node *n)
{
	char upper[17];

	(void)snprintf(upper, sizeof(upper), "%.16s", n->text);
	for (char *p = upper; *p; p++)
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 0x20);
	if (strcmp(upper, "A") == 0 || strcmp(upper, "AAAA") == 0 || sb_dns_type_of(upper) != 0)
		return true;
	return bad(c, n, "no record type that there is; A, AAAA, TXT, MX, SRV, NS, CNAME, SOA, PTR, "
		   "NAPTR, SVCB, HTTPS, CAA");
}

/* ---- commands ---- */

static bool check_command(struct check *c, const struct doc_node *n, bool any_order)
{
	struct sb_err err = { 0 };

	if (sb_cmd_rule_check(n->text, any_order, &err) == 0)
		return true;
	check_problem(c, n, "bad_value", "%.500s", err.text[0] ? err.text : "no pattern of a command");
	return false;
}

bool check_entry(struct check *c, const struct cfg_key *row, const struct doc_node *n)
{
	const struct doc_node *run = doc_get(n, "run");
	const struct doc_node *any = doc_get(n, "any_order");

	if (strncmp(row->path, "policy.commands.", 16) != 0 || !run || !any || any->kind != DOC_BOOL ||
	    !any->boolean)
		return true; /* what is written in one order was checked with its text */
	return check_command(c, run, true);
}

static bool check_syscall(struct check *c, const struct doc_node *n)
{
	struct sb_err err = { 0 };

	if (sb_syscall_may_deny(n->text, &err) == 0)
		return true;
	check_problem(c, n, "bad_value", "%.500s", err.text[0] ? err.text : "no system call");
	return false;
}

/* ---- paths ---- */

static bool host_path(struct check *c, const struct doc_node *n, const char *prefix,
		      const char *text, const char **ret)
{
	char full[8192];
	int len;

	if (has_control(text))
		return bad(c, n, "holds a control character");
	if (text[0] == '~')
		return bad(c, n, "~ is not expanded in files; write the whole path");
	if (text[0] == '/' || !c->dir[0]) {
		len = snprintf(full, sizeof(full), "%s%s", prefix, text);
	} else {
		while (strncmp(text, "./", 2) == 0)
			text += 2;
		if (strcmp(text, ".") == 0)
			text = "";
		len = snprintf(full, sizeof(full), "%s%s%s%s", prefix, c->dir,
			       *text && strcmp(c->dir, "/") != 0 ? "/" : "", text);
	}
	if (len < 0 || (size_t)len > SB_PLAN_MAX_PATH + strlen(prefix))
		return bad(c, n, "the path is too long");
	*ret = arena_text(c->a, full, (size_t)len);
	c->oom = c->oom || !*ret;
	return !c->oom;
}

static bool guest_path(struct check *c, const struct doc_node *n, const char *text, const char **ret)
{
	char norm[SB_PLAN_MAX_PATH + 1];

	if (has_control(text))
		return bad(c, n, "holds a control character");
	if (sb_path_normalise(text, norm) < 0)
		return bad(c, n, "the path inside must be absolute, without \"..\"");
	*ret = arena_text(c->a, norm, strlen(norm));
	c->oom = c->oom || !*ret;
	return !c->oom;
}

static bool check_guard(struct check *c, const struct doc_node *n, const char **ret)
{
	char norm[SB_PLAN_MAX_PATH + 1];
	char rooted[SB_PLAN_MAX_PATH + 2];
	bool absolute = n->text[0] == '/';

	if (has_control(n->text))
		return bad(c, n, "holds a control character");
	(void)snprintf(rooted, sizeof(rooted), "%s%s", absolute ? "" : "/", n->text);
	if (sb_path_normalise(rooted, norm) < 0 || strcmp(norm, "/") == 0)
		return bad(c, n, "must be a path in the project, or absolute inside; without \"..\"");
	*ret = arena_text(c->a, norm + !absolute, strlen(norm + !absolute));
	c->oom = c->oom || !*ret;
	return !c->oom;
}

static bool check_image(struct check *c, const struct doc_node *n, const char **ret)
{
	static const char *const local[] = { "dir:", "oci:", "oci-archive:", "docker-archive:" };
	sb_autofree struct image_ref *ref = NULL;

	if (strcmp(n->text, "host") == 0) {
		*ret = "host";
		return true;
	}
	if (n->text[0] == '/')
		return host_path(c, n, "", n->text, ret);
	for (size_t i = 0; i < SB_ARRAY_LEN(local); i++)
		if (strncmp(n->text, local[i], strlen(local[i])) == 0 && n->text[strlen(local[i])])
			return host_path(c, n, local[i], n->text + strlen(local[i]), ret);
	ref = malloc(sizeof(*ref));
	c->oom = c->oom || !ref;
	if (!ref)
		return false;
	if (image_ref_parse(n->text, ref, NULL) < 0)
		return bad(c, n, "must be host, dir:PATH, oci:DIR, oci-archive:FILE, "
				 "docker-archive:FILE or NAME[:TAG][@sha256:...]");
	*ret = n->text;
	return true;
}

/* ---- the rest ---- */

static bool check_plain(struct check *c, const struct doc_node *n)
{
	return !has_control(n->text) || bad(c, n, "holds a control character");
}

static bool check_extends(struct check *c, const struct doc_node *n, const char **ret)
{
	if (strstr(n->text, "://"))
		return bad(c, n, "must be a file of this machine; addresses are not available yet");
	return host_path(c, n, "", n->text, ret);
}

static bool check_url(struct check *c, const struct doc_node *n)
{
	const char *rest = strncmp(n->text, "https://", 8) == 0  ? n->text + 8
			   : strncmp(n->text, "http://", 7) == 0 ? n->text + 7
								 : NULL;

	if (!rest || !*rest || *rest == '/' || strpbrk(n->text, "?#@\\ ") || has_control(n->text))
		return bad(c, n, "must be http://HOST/... or https://HOST/... without user name, ? and #");
	return true;
}

bool check_text(struct check *c, const struct cfg_key *row, const struct doc_node *n,
		const char **ret)
{
	bool good = true;

	switch (row->text) {
	case CFG_X_EXTENDS:
		return check_extends(c, n, ret);
	case CFG_X_IMAGE:
		return check_image(c, n, ret);
	case CFG_X_HOST_PATH:
		return host_path(c, n, "", n->text, ret);
	case CFG_X_GUEST_PATH:
		return guest_path(c, n, n->text, ret);
	case CFG_X_GUARD:
		return check_guard(c, n, ret);
	case CFG_X_COMMAND:
		good = check_command(c, n, false);
		break;
	case CFG_X_NET_ALLOW:
		good = check_rule(c, n, false, false);
		break;
	case CFG_X_NET_DENY:
		good = check_rule(c, n, true, false);
		break;
	case CFG_X_GROUP_RULE:
		good = check_rule(c, n, false, true);
		break;
	case CFG_X_NETWORK:
		good = check_network(c, n, strstr(row->path, "blocked") != NULL);
		break;
	case CFG_X_DNS_TYPE:
		good = check_dns_type(c, n);
		break;
	case CFG_X_SYSCALL:
		good = check_syscall(c, n);
		break;
	case CFG_X_CONNECT:
		good = check_connect(c, n);
		break;
	case CFG_X_URL:
		good = check_url(c, n);
		break;
	case CFG_X_NAME:
	case CFG_X_SECRET:
		good = check_plain(c, n);
		break;
	case CFG_X_ANY:
	case CFG_X_ENV_VALUE:
	case CFG_X_MOUNT:
	default:
		break;
	}
	if (good)
		*ret = arena_text(c->a, n->text, n->len);
	c->oom = c->oom || (good && !*ret);
	return good && !c->oom;
}

/* ---- names of free keys ---- */

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool check_name(struct check *c, size_t table, const struct doc_node *key)
{
	const char *s = key->text;
	const char *path = cfg_keys[table].path;

	if (strcmp(path, "env") == 0) {
		if (!*s || strchr(DIGITS, *s) || s[strspn(s, LOWER UPPER DIGITS "_")] || key->len > 255)
			return bad(c, key, "no name of a variable: letters, digits and _ alone");
	} else if (strcmp(path, "groups") == 0) {
		if (!*s || !strchr(LOWER, *s) || s[strspn(s, LOWER DIGITS "-_")] || key->len > 64)
			return bad(c, key, "no name of a group: a lower-case letter, then letters, "
				   "digits, - and _");
		if (in_words(cfg_groups, s))
			return bad(c, key, "is a built-in group; choose another name");
	} else if (!*s || key->len > 255 || has_control(s)) {
		return bad(c, key, "no name that can be used here");
	}
	return true;
}

/* ---- two ways to write one thing ---- */

static bool make_map(struct check *c, size_t place, const struct doc_node *n, size_t room,
		     struct cfg_value *ret)
{
	*ret = check_value(c, NULL, n);
	ret->kind = DOC_MAP;
	for (size_t i = 0; i < table_rows(place); i++)
		if (cfg_keys[place + i].type == CFG_T_MAP)
			ret->row = &cfg_keys[place + i];
	ret->items = arena_array(c->a, room, sizeof(*ret->items));
	ret->keys = arena_array(c->a, room, sizeof(*ret->keys));
	c->oom = c->oom || !ret->items || !ret->keys;
	return !c->oom;
}

static void add_text(size_t place, const char *key, const char *text, struct cfg_value *map)
{
	size_t child = table_child(place, key);

	map->keys[map->n] = table_name(child);
	map->items[map->n++] = (struct cfg_value){ .kind = DOC_STR,
						   .text = text,
						   .row = &cfg_keys[child],
						   .locked_by = map->locked_by,
						   .origin = map->origin };
}

static bool mount_as_map(struct check *c, size_t place, const struct doc_node *n,
			 struct cfg_value *ret)
{
	sb_autofree char *copy = strdup(n->text);
	char *guest = copy ? strchr(copy, ':') : NULL;
	char *mode = NULL;
	const char *host_text = NULL;
	const char *guest_text = NULL;

	c->oom = c->oom || !copy;
	if (!copy)
		return false;
	if (guest) {
		*guest++ = '\0';
		mode = strchr(guest, ':');
		if (mode)
			*mode++ = '\0';
	}
	if (!guest || !*copy || !*guest ||
	    (mode && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0))
		return bad(c, n, "must be HOST:GUEST, HOST:GUEST:ro or HOST:GUEST:rw");
	if (!host_path(c, n, "", copy, &host_text) || !guest_path(c, n, guest, &guest_text) ||
	    !make_map(c, place, n, 3, ret))
		return false;
	add_text(place, "host", host_text, ret);
	add_text(place, "guest", guest_text, ret);
	if (mode)
		add_text(place, "mode", strcmp(mode, "rw") == 0 ? "rw" : "ro", ret);
	return check_fill(c, place, ret);
}

bool check_as_map(struct check *c, size_t place, const struct doc_node *n, struct cfg_value *ret)
{
	const struct cfg_key *row = &cfg_keys[place];
	const char *text = NULL;

	if (n->len > (size_t)row->max)
		return bad(c, n, "is too long");
	if (row->text == CFG_X_MOUNT)
		return mount_as_map(c, place, n, ret);
	if (n->text[strspn(n->text, " \t")] == '\0')
		return bad(c, n, "may not be empty or blank");
	if (!check_text(c, row, n, &text) || !make_map(c, place, n, 5, ret))
		return false;
	add_text(place, "run", text, ret);
	return check_fill(c, place, ret);
}
