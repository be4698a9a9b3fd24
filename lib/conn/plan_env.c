#include "conn/plan_env.h"

#include <errno.h>
#include <string.h>

static void drop_value(struct sb_plan_env *e)
{
	if (e->value)
		sb_wipe(e->value, strlen(e->value));
	free(e->value);
	e->value = NULL;
}

void sb_plan_env_wipe(struct sb_plan *p)
{
	for (size_t i = 0; i < p->n_env; i++)
		drop_value(&p->env[i]);
}

static int compare(const char *have, const char *name, size_t len)
{
	int r = strncmp(have, name, len);

	return r != 0 ? r : have[len] != '\0';
}

/* Room for @name where it belongs. Return: NULL with nothing changed when out of memory. */
static struct sb_plan_env *insert(struct sb_plan *p, size_t at, const char *name, size_t len)
{
	struct sb_plan_env *v = realloc(p->env, (p->n_env + 1) * sizeof(*v));
	char *copy;

	if (!v)
		return NULL;
	p->env = v;
	copy = strndup(name, len);
	if (!copy)
		return NULL;
	memmove(v + at + 1, v + at, (p->n_env - at) * sizeof(*v));
	v[at] = (struct sb_plan_env){ .name = copy };
	p->n_env++;
	return &v[at];
}

int sb_plan_env_set(struct sb_plan *p, const char *name, size_t name_len, const char *value)
{
	struct sb_plan_env *e = NULL;
	char *copy = strdup(value);
	size_t at = 0;
	int order = 1;

	if (!copy)
		return -ENOMEM;
	while (at < p->n_env && (order = compare(p->env[at].name, name, name_len)) < 0)
		at++;
	if (at < p->n_env && order == 0)
		e = &p->env[at];
	else if (p->n_env < SB_PLAN_MAX_ARGS)
		e = insert(p, at, name, name_len);
	if (!e) {
		sb_wipe(copy, strlen(copy));
		free(copy);
		return p->n_env < SB_PLAN_MAX_ARGS ? -ENOMEM : -E2BIG;
	}
	drop_value(e);
	e->value = copy;
	sb_sha256(copy, strlen(copy), e->sha256);
	return 0;
}

int sb_plan_env_pack(const struct sb_plan *p, uint8_t **ret, size_t *ret_len)
{
	size_t len = 0;
	uint8_t *block;
	uint8_t *at;

	for (size_t i = 0; i < p->n_env; i++) {
		if (!p->env[i].value)
			return -EINVAL;
		len += strlen(p->env[i].value) + 1;
		if (len > SB_PLAN_MAX_ARG_BYTES)
			return -E2BIG;
	}
	block = malloc(len + 1);
	if (!block)
		return -ENOMEM;
	at = block;
	for (size_t i = 0; i < p->n_env; i++) {
		size_t n = strlen(p->env[i].value) + 1;

		memcpy(at, p->env[i].value, n);
		at += n;
	}
	*ret = block;
	*ret_len = len;
	return 0;
}

static int check_block(const struct sb_plan *p, const uint8_t *block, size_t len,
		       struct sb_err *err)
{
	for (size_t i = 0; i < p->n_env; i++) {
		const uint8_t *end = len > 0 ? memchr(block, 0, len) : NULL;
		uint8_t sha[SB_SHA256_LEN];
		size_t n;

		if (!end)
			return sb_err_set(err, -EBADMSG, "environment: %zu values are missing",
					  p->n_env - i);
		n = (size_t)(end - block);
		sb_sha256(block, n, sha);
		if (memcmp(sha, p->env[i].sha256, sizeof(sha)) != 0)
			return sb_err_set(err, -EKEYREJECTED,
					  "environment: the value of %.100s is not the one of the "
					  "plan", p->env[i].name);
		block += n + 1;
		len -= n + 1;
	}
	return len == 0 ? 0 : sb_err_set(err, -EBADMSG, "environment: more values than names");
}

int sb_plan_env_fill(struct sb_plan *p, const uint8_t *block, size_t len, struct sb_err *err)
{
	int r = len > SB_PLAN_MAX_ARG_BYTES
			? sb_err_set(err, -EBADMSG, "environment: larger than %u bytes",
				     SB_PLAN_MAX_ARG_BYTES)
			: check_block(p, block, len, err);

	for (size_t i = 0; r == 0 && i < p->n_env; i++) {
		drop_value(&p->env[i]);
		p->env[i].value = strdup((const char *)block);
		if (!p->env[i].value)
			r = sb_err_set(err, -ENOMEM, "environment: out of memory");
		block += strlen((const char *)block) + 1;
	}
	if (r < 0)
		sb_plan_env_wipe(p);
	return r;
}

int sb_plan_env_vector(const struct sb_plan *p, char ***ret, size_t *ret_len)
{
	size_t len = (p->n_env + 1) * sizeof(char *);
	size_t n = 0;
	char **v;
	char *at;

	for (size_t i = 0; i < p->n_env; i++)
		if (p->env[i].value)
			len += strlen(p->env[i].name) + strlen(p->env[i].value) + 2;
	v = malloc(len);
	if (!v)
		return -ENOMEM;
	at = (char *)(v + p->n_env + 1);
	for (size_t i = 0; i < p->n_env; i++) {
		size_t name;
		size_t value;

		if (!p->env[i].value)
			continue;
		name = strlen(p->env[i].name);
		value = strlen(p->env[i].value);
		v[n++] = at;
		memcpy(at, p->env[i].name, name);
		at[name] = '=';
		memcpy(at + name + 1, p->env[i].value, value + 1);
		at += name + value + 2;
	}
	v[n] = NULL;
	*ret = v;
	*ret_len = len;
	return 0;
}
