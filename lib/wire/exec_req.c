#include "wire/exec_req.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x71657873U /* "sxeq" */
#define MAX_STRINGS 4096U

void sb_exec_req_write(struct sb_buf *b, const struct sb_exec_req *r)
{
	sb_buf_add_le32(b, MAGIC);
	sb_buf_add_le32(b, r->flags);
	sb_buf_add_le32(b, r->cwd_len);
	sb_buf_add_le32(b, r->n_argv);
	sb_buf_add_le32(b, r->argv_len);
	sb_buf_add_le32(b, r->n_env);
	sb_buf_add_le32(b, r->env_len);
	sb_buf_add(b, r->cwd, r->cwd_len);
	sb_buf_add(b, r->argv, r->argv_len);
	sb_buf_add(b, r->env, r->env_len);
}

/* Exactly @n strings, each with its NUL, and nothing else. */
static bool strings_ok(const char *p, uint32_t len, uint32_t n)
{
	uint32_t seen = 0;

	if (n > MAX_STRINGS || (len > 0 && p[len - 1] != '\0'))
		return false;
	for (uint32_t i = 0; i < len; i++)
		seen += p[i] == '\0';
	return seen == n;
}

int sb_exec_req_parse(const uint8_t *p, size_t len, struct sb_exec_req *ret)
{
	struct sb_rd rd = { .p = p, .len = len };
	struct sb_exec_req r = { 0 };
	uint32_t magic = sb_rd_le32(&rd);

	r.flags = sb_rd_le32(&rd);
	r.cwd_len = sb_rd_le32(&rd);
	r.n_argv = sb_rd_le32(&rd);
	r.argv_len = sb_rd_le32(&rd);
	r.n_env = sb_rd_le32(&rd);
	r.env_len = sb_rd_le32(&rd);
	r.cwd = (const char *)sb_rd_bytes(&rd, r.cwd_len);
	r.argv = (const char *)sb_rd_bytes(&rd, r.argv_len);
	r.env = (const char *)sb_rd_bytes(&rd, r.env_len);
	if (len > SB_EXEC_REQ_MAX || sb_rd_end(&rd) < 0 || magic != MAGIC || r.flags > 3 ||
	    r.flags == SB_EXEC_REQ_SEPARATE_STDERR || r.n_argv == 0 || r.cwd_len > 4095 ||
	    (r.cwd_len > 0 && (r.cwd[0] != '/' || memchr(r.cwd, 0, r.cwd_len))) ||
	    !strings_ok(r.argv, r.argv_len, r.n_argv) || !strings_ok(r.env, r.env_len, r.n_env))
		return -EBADMSG;
	*ret = r;
	return 0;
}
