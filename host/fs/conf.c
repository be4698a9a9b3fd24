#include "fs/conf.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/num.h"

void fs_conf_init(struct fs_conf *c)
{
	*c = (struct fs_conf){ .root_fd = -1 };
}

static void free_rules(struct fs_rule *r)
{
	while (r) {
		struct fs_rule *next = r->next;

		free_rules(r->sub); /* at most FS_MAX_RULE_DEPTH deep */
		free(r->name);
		free(r);
		r = next;
	}
}

void fs_conf_done(struct fs_conf *c)
{
	for (size_t i = 0; i < c->n_leaves; i++)
		free(c->leaves[i].path);
	free(c->leaves);
	free_rules(c->rules.sub);
	fs_conf_init(c);
}

static int parse_id(const char *s, size_t len, uint32_t *ret)
{
	char buf[16];
	uint64_t v;
	int r;

	if (len == 0 || len >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, s, len);
	buf[len] = '\0';
	r = sb_num_u64(buf, 0, UINT32_MAX - 1, &v); /* (uid_t)-1 means "leave" to the kernel */
	if (r < 0)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

static int parse_ids(const char *s, uint32_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(s, ":");

		if (parse_id(s, len, &ret[i]) < 0)
			return -EINVAL;
		s += len;
		if (*s != (i + 1 < n ? ':' : '\0'))
			return -EINVAL;
		s++;
	}
	return 0;
}

int fs_conf_map(const char *s, struct fs_map *ret)
{
	uint32_t v[4];

	if (parse_ids(s, v, 4) < 0)
		return -EINVAL;
	*ret = (struct fs_map){ v[0], v[1], v[2], v[3] };
	return 0;
}

/* The next component of a relative path. Return: its length; 0 at the end; -EINVAL. */
static int component(const char **p)
{
	size_t len = strcspn(*p, "/");

	if (**p == '\0')
		return 0;
	if (len == 0 || len > 255)
		return -EINVAL;
	if ((*p)[0] == '.' && (len == 1 || (len == 2 && (*p)[1] == '.')))
		return -EINVAL;
	if ((*p)[len] == '/' && (*p)[len + 1] == '\0')
		return -EINVAL;
	return (int)len;
}

static int check_relative(const char *path)
{
	const char *p = path;
	int n;

	if (*p == '\0' || strlen(path) > PATH_MAX - 1)
		return -EINVAL;
	for (int depth = 0; (n = component(&p)) > 0; depth++) {
		if (depth >= FS_MAX_RULE_DEPTH)
			return -EINVAL;
		p += n;
		if (*p == '/')
			p++;
	}
	return n;
}

static bool path_clash(const char *a, const char *b)
{
	size_t la = strlen(a);
	size_t lb = strlen(b);
	size_t n = SB_MIN(la, lb);

	if (strncmp(a, b, n) != 0)
		return false;
	return la == lb || (la < lb ? b[n] == '/' : a[n] == '/');
}

int fs_conf_leaf(struct fs_conf *c, const char *spec)
{
	const char *eq = strrchr(spec, '=');
	sb_autofree char *path = NULL;
	struct fs_leaf *bigger;
	uint64_t fd;

	if (!eq || c->n_leaves >= FS_MAX_TREE || sb_num_u64(eq + 1, 3, INT_MAX, &fd) < 0)
		return -EINVAL;
	path = strndup(spec, (size_t)(eq - spec));
	if (!path)
		return -ENOMEM;
	if (check_relative(path) < 0)
		return -EINVAL;
	for (size_t i = 0; i < c->n_leaves; i++)
		if (path_clash(c->leaves[i].path, path))
			return -EINVAL;
	bigger = reallocarray(c->leaves, c->n_leaves + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	c->leaves = bigger;
	c->leaves[c->n_leaves++] = (struct fs_leaf){ sb_take(&path), (int)fd };
	return 0;
}

static int rule_child(struct fs_rule *at, const char *name, size_t len, struct fs_rule **ret)
{
	struct fs_rule *r;

	for (r = at->sub; r; r = r->next) {
		if (strlen(r->name) == len && memcmp(r->name, name, len) == 0) {
			*ret = r;
			return 0;
		}
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->name = strndup(name, len);
	if (!r->name) {
		free(r);
		return -ENOMEM;
	}
	r->next = at->sub;
	at->sub = r;
	*ret = r;
	return 0;
}

int fs_conf_rule(struct fs_conf *c, const char *path, enum fs_rule_kind kind)
{
	struct fs_rule *at = &c->rules;
	const char *p = path;
	int n;

	if (c->n_rules >= FS_MAX_RULES || check_relative(path) < 0)
		return -EINVAL;
	while ((n = component(&p)) > 0) {
		int r = rule_child(at, p, (size_t)n, &at);

		if (r < 0)
			return r;
		p += n;
		if (*p == '/')
			p++;
	}
	/* of two rules for one path the stricter one counts */
	at->git = kind == FS_RULE_GIT && (at->git || (!at->hide && !at->protect));
	at->hide = at->hide || kind == FS_RULE_HIDE;
	at->protect = at->protect || kind != FS_RULE_HIDE;
	c->n_rules++;
	return 0;
}

const struct fs_rule *fs_rule_sub(const struct fs_rule *at, const char *name)
{
	if (!at)
		return NULL;
	for (const struct fs_rule *r = at->sub; r; r = r->next)
		if (strcmp(r->name, name) == 0)
			return r;
	return NULL;
}

static int set_root(struct fs_conf *c, enum fs_root_kind kind, const char *s)
{
	uint64_t fd;

	if (c->kind != FS_ROOT_NONE || sb_num_u64(s, 3, INT_MAX, &fd) < 0)
		return -EINVAL;
	c->kind = kind;
	c->root_fd = (int)fd;
	return 0;
}

static int set_as(struct fs_conf *c, const char *s)
{
	uint32_t v[2];

	if (parse_ids(s, v, 2) < 0)
		return -EINVAL;
	c->as_uid = v[0];
	c->as_gid = v[1];
	c->as_set = true;
	return 0;
}

static int set_cache(struct fs_conf *c, const char *s)
{
	if (strcmp(s, "long") == 0)
		c->cache = FS_CACHE_LONG;
	else if (strcmp(s, "short") == 0)
		c->cache = FS_CACHE_SHORT;
	else
		return -EINVAL;
	return 0;
}

static int set_tree(struct fs_conf *c, const char *s)
{
	if (c->kind != FS_ROOT_NONE && c->kind != FS_ROOT_TREE)
		return -EINVAL;
	c->kind = FS_ROOT_TREE;
	return fs_conf_leaf(c, s);
}

/* Return: 0; 1 = not an option with a value; -errno. */
static int take_value(struct fs_conf *c, const char *name, const char *v)
{
	int r;

	if (strcmp(name, "--root") == 0)
		return set_root(c, FS_ROOT_DIR, v);
	if (strcmp(name, "--file") == 0)
		return set_root(c, FS_ROOT_FILE, v);
	if (strcmp(name, "--tree") == 0)
		return set_tree(c, v);
	if (strcmp(name, "--map") == 0) {
		r = fs_conf_map(v, &c->map);
		c->map_set = r == 0;
		return r;
	}
	if (strcmp(name, "--as") == 0)
		return set_as(c, v);
	if (strcmp(name, "--cache") == 0)
		return set_cache(c, v);
	if (strcmp(name, "--quota-bytes") == 0)
		return sb_num_u64(v, 1, INT64_MAX, &c->quota_bytes) < 0 ? -EINVAL : 0;
	if (strcmp(name, "--quota-inodes") == 0)
		return sb_num_u64(v, 1, INT64_MAX, &c->quota_inodes) < 0 ? -EINVAL : 0;
	if (strcmp(name, "--hide") == 0)
		return fs_conf_rule(c, v, FS_RULE_HIDE);
	if (strcmp(name, "--protect") == 0)
		return fs_conf_rule(c, v, FS_RULE_PROTECT);
	if (strcmp(name, "--git-config") == 0)
		return fs_conf_rule(c, v, FS_RULE_GIT);
	return 1;
}

int fs_conf_parse(struct fs_conf *c, int argc, char *const *argv, struct sb_err *err)
{
	for (int i = 1; i < argc; i++) {
		int r;

		if (strcmp(argv[i], "--ro") == 0) {
			c->ro = true;
			continue;
		}
		if (strcmp(argv[i], "--root-is-root") == 0) {
			c->root_is_root = true;
			continue;
		}
		if (strcmp(argv[i], "--no-xattr") == 0) {
			c->no_xattr = true;
			continue;
		}
		r = i + 1 < argc ? take_value(c, argv[i], argv[i + 1]) : 1;
		if (r > 0)
			return sb_err_set(err, -EINVAL, "unknown option or no value: %s", argv[i]);
		if (r < 0)
			return sb_err_set(err, r, "bad %s: %s", argv[i], argv[i + 1]);
		i++;
	}
	if (c->kind == FS_ROOT_NONE)
		return sb_err_set(err, -EINVAL, "one of --root, --file, --tree is needed");
	if (c->kind == FS_ROOT_TREE) {
		c->ro = true;
		c->no_xattr = true; /* one request less for each file that ls -l shows */
	}
	if (c->kind != FS_ROOT_DIR && c->n_rules > 0)
		return sb_err_set(err, -EINVAL, "path rules need --root");
	if (!c->ro && !c->map_set)
		return sb_err_set(err, -EINVAL, "a writable mount needs --map");
	return 0;
}
