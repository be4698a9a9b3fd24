#include "instance_base.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "image/cache.h"

void instance_base_done(struct instance_base *b)
{
	sb_free_list(&b->env);
	free(b->path);
	free(b->reference);
	free(b->digest);
	for (size_t i = 0; i < b->n_layers; i++)
		image_layer_done(&b->layers[i]);
	*b = (struct instance_base){ 0 };
}

static const char *const kinds[] = {
	[SB_IMAGE_HOST] = "host", [SB_IMAGE_DIR] = "dir", [SB_IMAGE_LAYERS] = "layers"
};

/* ---- to text ---- */

int instance_base_write(const struct instance_base *b, char **ret)
{
	json_t *env = json_array();
	json_t *j;

	for (char **e = b->env; e && *e; e++)
		(void)json_array_append_new(env, json_string(*e)); /* not UTF-8: left out */
	j = json_pack("{s:s, s:s*, s:s*, s:s*, s:o}", "image", kinds[b->image], "path", b->path,
		      "reference", b->reference, "digest", b->digest, "env", env);
	*ret = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	return *ret ? 0 : -ENOMEM;
}

struct search {
	const uint8_t *sha256;
	char digest[72];
};

static int has_layer(void *arg, const struct image *i)
{
	struct search *s = arg;

	if (memcmp(i->layer.sha256, s->sha256, 32) != 0)
		return 0;
	(void)snprintf(s->digest, sizeof(s->digest), "%s", i->digest);
	return 1;
}

int instance_base_text(const struct sb_dirs *d, const struct sb_plan *p, char **ret)
{
	SB_CLEANUP(image_done) struct image i = { 0 };
	struct instance_base b = { .image = p->image, .path = p->image_path };
	struct search s = { .digest = "" };

	if (p->image == SB_IMAGE_LAYERS && p->n_layers > 0) {
		s.sha256 = p->layers[0].sha256;
		if (image_each(d, has_layer, NULL, &s, NULL) == 1 &&
		    image_record_load(d, s.digest, &i, NULL) == 0) {
			b.reference = i.reference;
			b.digest = i.digest;
			b.env = i.env;
		}
	}
	return instance_base_write(&b, ret);
}

int instance_layers_text(const struct sb_plan_layer *layers, size_t n, char **ret)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < n; i++) {
		char hex[65];

		sb_hex_write(layers[i].sha256, 32, hex);
		(void)json_array_append_new(a, json_string(hex));
	}
	*ret = a ? json_dumps(a, JSON_COMPACT) : NULL;
	json_decref(a);
	return *ret ? 0 : -ENOMEM;
}

/* ---- from text ---- */

int instance_base_parse(const char *text, struct instance_base *ret)
{
	SB_CLEANUP(instance_base_done) struct instance_base b = { 0 };
	json_t *j = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *kind = json_string_value(json_object_get(j, "image"));
	int r;

	if (!text)
		return -ENOENT;
	for (size_t k = 1; kind && k < SB_ARRAY_LEN(kinds); k++)
		if (strcmp(kind, kinds[k]) == 0)
			b.image = (enum sb_image_kind)k;
	r = b.image == SB_IMAGE_NONE ? -EBADMSG : image_copy_text(j, "path", &b.path);
	if (r == 0)
		r = image_copy_text(j, "reference", &b.reference);
	if (r == 0)
		r = image_copy_text(j, "digest", &b.digest);
	if (r == 0)
		r = image_copy_env(json_object_get(j, "env"), &b.env);
	json_decref(j);
	if (r == 0 && (b.image == SB_IMAGE_DIR) != (b.path != NULL))
		r = -EBADMSG;
	if (r < 0)
		return r;
	*ret = b;
	b = (struct instance_base){ 0 };
	return 0;
}

static int gone(const struct instance *was, const struct instance_base *b, const char *hex,
		size_t at, const char *why, struct sb_err *err)
{
	char cure[400] = "";

	if (at == 0 && b->image == SB_IMAGE_LAYERS && b->reference && b->digest &&
	    !strchr(b->reference, '@') && !strchr(b->reference, ' '))
		(void)snprintf(cure, sizeof(cure), "sendbox image pull %.200s@%.71s brings it back, if it "
						   "still exists; otherwise ", b->reference, b->digest);
	return sb_err_set(err, -ESTALE, "instance \"%s\" was made from layer sha256:%.12s, which is not in the "
			  "cache any more%s%.100s: %ssendbox rm %s, or take another --name", was->name, hex,
			  why[0] ? " as it was: " : "", why, cure, was->name);
}

int instance_base_get(const struct sb_dirs *d, const struct instance *was,
		      struct instance_base *ret, struct sb_err *err)
{
	SB_CLEANUP(instance_base_done) struct instance_base b = { 0 };
	json_t *list = was->layers ? json_loads(was->layers, 0, NULL) : NULL;
	int r = instance_base_parse(was->base, &b);

	if (r == 0 && json_array_size(list) > SB_PLAN_MAX_LAYERS)
		r = -EBADMSG;
	if (r < 0) {
		json_decref(list);
		return r == -ENOENT ? r : sb_err_set(err, r, "instance \"%s\": its row is damaged", was->name);
	}
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const char *hex = json_string_value(json_array_get(list, i));
		struct sb_err why = { 0 };
		uint8_t sha[32];

		if (!hex || sb_hex_parse(hex, sha, sizeof(sha)) < 0) {
			r = sb_err_set(err, -EBADMSG, "instance \"%s\": its row is damaged", was->name);
			break;
		}
		r = image_layer_find(d, sha, &b.layers[i], &why);
		if (r == 0)
			b.n_layers++;
		else
			r = gone(was, &b, hex, i, why.text, err);
	}
	json_decref(list);
	if (r < 0)
		return r;
	*ret = b;
	b = (struct instance_base){ 0 };
	return 0;
}

void instance_base_target(const struct instance_base *b, struct launch_target *t)
{
	t->image = b->image;
	t->image_path = b->path;
	t->layers = b->layers;
	t->n_layers = b->n_layers;
	t->env = (const char *const *)b->env;
}

void instance_base_tell(const char *name, const struct instance_base *b, const char *what,
			const struct sb_plan_layer *now, size_t n_now)
{
	const struct sb_plan_layer *was = b->n_layers ? &b->layers[b->n_layers - 1] : NULL;
	bool same = n_now == b->n_layers;
	char then_hex[65] = "nothing";
	char now_hex[65] = "nothing";

	for (size_t i = 0; same && i < n_now; i++)
		same = memcmp(now[i].sha256, b->layers[i].sha256, 32) == 0;
	if (same)
		return;
	if (was)
		sb_hex_write(was->sha256, 32, then_hex);
	if (n_now)
		sb_hex_write(now[n_now - 1].sha256, 32, now_hex);
	cli_error("instance %s stays on what it was made from (sha256:%.12s); %s now gives sha256:%.12s: take "
		  "another --name for that", name, then_hex, what, now_hex);
}

/* The value of a line "KEY=VALUE" or KEY="VALUE"; "-" where there is none. */
static void value_of(const char *text, const char *key, char *out, size_t cap)
{
	size_t n = strlen(key);

	(void)snprintf(out, cap, "-");
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (strncmp(p, key, n) == 0 && p[n] == '=') {
			const char *v = p + n + 1 + (p[n + 1] == '"');

			(void)snprintf(out, cap, "%.*s", (int)SB_MIN(strcspn(v, "\"\n"), cap - 1), v);
			return;
		}
}

void instance_host_text(char out[INSTANCE_HOST_ROOM])
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	char id[40];
	char version[40];
	struct utsname u;

	if (uname(&u) < 0)
		(void)snprintf(u.machine, sizeof(u.machine), "-");
	if (sb_fd_read_file(AT_FDCWD, "/usr/lib/os-release", 65536, &text, &len) < 0)
		text = NULL;
	value_of(text, "ID", id, sizeof(id));
	value_of(text, "VERSION_ID", version, sizeof(version));
	(void)snprintf(out, INSTANCE_HOST_ROOM, "%s %s %.40s", id, version, u.machine);
}

char *instance_option(const struct instance *i, const char *name)
{
	json_t *list = i->options ? json_loads(i->options, 0, NULL) : NULL;
	size_t n = strlen(name);
	char *ret = NULL;

	for (size_t k = 0; !ret && k < json_array_size(list); k++) {
		const char *w = json_string_value(json_array_get(list, k));

		if (w && strncmp(w, "--", 2) == 0 && strncmp(w + 2, name, n) == 0 && w[2 + n] == '=')
			ret = strdup(w + 3 + n);
	}
	json_decref(list);
	return ret;
}
