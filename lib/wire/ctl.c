/*
 * Control messages: u8 type, then fixed fields, then counted bytes; little-endian. The parser
 * accepts exactly what the writer makes: unknown bits, short, left-over and unterminated input is
 * -EBADMSG. The same layout table serves nothing else, so both directions are spelled out.
 */
#include "wire/ctl.h"

#include <errno.h>
#include <string.h>

#define FLAGS_ALL (SB_CTL_F_TTY | SB_CTL_F_SEPARATE_STDERR)
#define LAST_ACTION 2 /* SB_CMD_LOG; nobody is asked inside a guest */
enum { EV_TOP_LEVEL = 1, EV_KILLED = 2, EV_CUT = 4, EV_ALL = 7 };

static void add_bytes(struct sb_buf *b, const char *p, size_t len)
{
	if (len > SB_CTL_MAX) {
		b->error = b->error ? b->error : -EFBIG;
		return;
	}
	sb_buf_add_le32(b, (uint32_t)len);
	sb_buf_add(b, p, len);
}

void sb_ctl_write(struct sb_buf *b, const struct sb_ctl *m)
{
	size_t start = b->len;

	sb_buf_add_u8(b, m->type);
	switch ((enum sb_ctl_type)m->type) {
	case SB_CTL_RUN:
		sb_buf_add_le32(b, m->cmd);
		sb_buf_add_le32(b, m->flags);
		sb_buf_add_le16(b, m->rows);
		sb_buf_add_le16(b, m->cols);
		break;
	case SB_CTL_EXEC:
		sb_buf_add_le32(b, m->cmd);
		sb_buf_add_le32(b, m->flags);
		sb_buf_add_le16(b, m->rows);
		sb_buf_add_le16(b, m->cols);
		sb_buf_add_le32(b, m->n_argv);
		sb_buf_add_le32(b, m->n_env);
		add_bytes(b, m->text, m->text_len);
		add_bytes(b, m->argv, m->argv_len);
		add_bytes(b, m->env, m->env_len);
		break;
	case SB_CTL_SIGNAL:
		sb_buf_add_le32(b, m->cmd);
		sb_buf_add_le32(b, m->value);
		break;
	case SB_CTL_RESIZE:
		sb_buf_add_le32(b, m->cmd);
		sb_buf_add_le16(b, m->rows);
		sb_buf_add_le16(b, m->cols);
		break;
	case SB_CTL_KILL:
	case SB_CTL_STARTED:
		sb_buf_add_le32(b, m->cmd);
		break;
	case SB_CTL_READY:
		add_bytes(b, m->text, m->text_len);
		break;
	case SB_CTL_EXITED:
		sb_buf_add_le32(b, m->cmd);
		sb_buf_add_u8(b, m->exit.kind);
		sb_buf_add_u8(b, m->exit.oom ? 1 : 0);
		sb_buf_add_le32(b, m->exit.value);
		sb_buf_add_le64(b, m->exit.user_us);
		sb_buf_add_le64(b, m->exit.sys_us);
		sb_buf_add_le64(b, m->exit.max_rss);
		break;
	case SB_CTL_FAILED:
		sb_buf_add_le32(b, m->value);
		add_bytes(b, m->text, m->text_len);
		break;
	case SB_CTL_TIME:
		sb_buf_add_le64(b, m->time_ns);
		break;
	case SB_CTL_EXEC_EVENT:
		sb_buf_add_le32(b, m->cmd);
		sb_buf_add_le32(b, m->event.pid);
		sb_buf_add_le32(b, m->event.rule);
		sb_buf_add_le32(b, m->event.count);
		sb_buf_add_u8(b, m->event.action);
		sb_buf_add_u8(b, (uint8_t)((m->event.top_level ? EV_TOP_LEVEL : 0) |
					   (m->event.killed ? EV_KILLED : 0) |
					   (m->event.cut ? EV_CUT : 0)));
		add_bytes(b, m->event.why, m->event.why_len);
		add_bytes(b, m->text, m->text_len);
		sb_buf_add_le32(b, m->n_argv);
		add_bytes(b, m->argv, m->argv_len);
		break;
	case SB_CTL_SHUTDOWN:
	case SB_CTL_BYE:
		break;
	case SB_CTL_NONE:
	default:
		sb_assert(false); /* our own bug: nobody sends an unknown type */
	}
	if (!b->error && b->len - start > SB_CTL_MAX)
		b->error = -EFBIG;
}

static void get_bytes(struct sb_rd *rd, const char **p, size_t *len)
{
	uint32_t n = sb_rd_le32(rd);

	*p = (const char *)sb_rd_bytes(rd, n);
	*len = *p ? n : 0;
}

/* Exactly @n strings, each with its NUL. */
static bool strings_ok(const char *p, size_t len, uint32_t n)
{
	const char *at = p;
	uint32_t have = 0;

	while (len > 0) {
		const char *nul = memchr(at, 0, len);

		if (!nul)
			return false;
		have++;
		len -= (size_t)(nul - at) + 1;
		at = nul + 1;
	}
	return have == n;
}

static int parse_exec(struct sb_rd *rd, struct sb_ctl *m)
{
	m->n_argv = sb_rd_le32(rd);
	m->n_env = sb_rd_le32(rd);
	get_bytes(rd, &m->text, &m->text_len);
	get_bytes(rd, &m->argv, &m->argv_len);
	get_bytes(rd, &m->env, &m->env_len);
	if (rd->bad || m->n_argv == 0 || m->n_argv > SB_CTL_MAX_STRINGS ||
	    m->n_env > SB_CTL_MAX_STRINGS)
		return -EBADMSG;
	if (memchr(m->text, 0, m->text_len) || !strings_ok(m->argv, m->argv_len, m->n_argv) ||
	    !strings_ok(m->env, m->env_len, m->n_env))
		return -EBADMSG;
	return 0;
}

static bool why_ok(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!(p[i] >= 'a' && p[i] <= 'z') && !(p[i] >= '0' && p[i] <= '9') && p[i] != '-')
			return false;
	return len >= 1 && len <= SB_CTL_MAX_WHY;
}

static int parse_event(struct sb_rd *rd, struct sb_ctl *m)
{
	uint8_t flags;

	m->cmd = sb_rd_le32(rd);
	m->event.pid = sb_rd_le32(rd);
	m->event.rule = sb_rd_le32(rd);
	m->event.count = sb_rd_le32(rd);
	m->event.action = sb_rd_u8(rd);
	flags = sb_rd_u8(rd);
	m->event.top_level = flags & EV_TOP_LEVEL;
	m->event.killed = flags & EV_KILLED;
	m->event.cut = flags & EV_CUT;
	get_bytes(rd, &m->event.why, &m->event.why_len);
	get_bytes(rd, &m->text, &m->text_len);
	m->n_argv = sb_rd_le32(rd);
	get_bytes(rd, &m->argv, &m->argv_len);
	if (rd->bad || m->event.count == 0 || m->event.action > LAST_ACTION || flags > EV_ALL ||
	    m->text_len > SB_CTL_MAX_EVENT_PATH || m->argv_len > SB_CTL_MAX_EVENT_ARGV)
		return -EBADMSG;
	if (!why_ok(m->event.why, m->event.why_len) || memchr(m->text, 0, m->text_len) ||
	    !strings_ok(m->argv, m->argv_len, m->n_argv))
		return -EBADMSG;
	return 0;
}

static int parse_exited(struct sb_rd *rd, struct sb_ctl *m)
{
	uint8_t oom;

	m->cmd = sb_rd_le32(rd);
	m->exit.kind = sb_rd_u8(rd);
	oom = sb_rd_u8(rd);
	m->exit.oom = oom == 1;
	m->exit.value = sb_rd_le32(rd);
	m->exit.user_us = sb_rd_le64(rd);
	m->exit.sys_us = sb_rd_le64(rd);
	m->exit.max_rss = sb_rd_le64(rd);
	if (oom > 1)
		return -EBADMSG;
	switch ((enum sb_exit_kind)m->exit.kind) {
	case SB_EXIT_CODE:
		return m->exit.value <= 255 ? 0 : -EBADMSG;
	case SB_EXIT_SIGNAL:
		return m->exit.value >= 1 && m->exit.value <= 64 ? 0 : -EBADMSG;
	case SB_EXIT_NOT_FOUND:
	case SB_EXIT_NOT_EXEC:
	case SB_EXIT_SETUP:
		return m->exit.value < 4096 ? 0 : -EBADMSG;
	case SB_EXIT_UNKNOWN:
	default:
		return -EBADMSG;
	}
}

static int parse_body(struct sb_rd *rd, struct sb_ctl *m)
{
	switch ((enum sb_ctl_type)m->type) {
	case SB_CTL_RUN:
	case SB_CTL_EXEC:
		m->cmd = sb_rd_le32(rd);
		m->flags = sb_rd_le32(rd);
		m->rows = sb_rd_le16(rd);
		m->cols = sb_rd_le16(rd);
		if (m->flags & ~FLAGS_ALL)
			return -EBADMSG;
		return m->type == SB_CTL_EXEC ? parse_exec(rd, m) : 0;
	case SB_CTL_SIGNAL:
		m->cmd = sb_rd_le32(rd);
		m->value = sb_rd_le32(rd);
		return m->value >= 1 && m->value <= 64 ? 0 : -EBADMSG;
	case SB_CTL_RESIZE:
		m->cmd = sb_rd_le32(rd);
		m->rows = sb_rd_le16(rd);
		m->cols = sb_rd_le16(rd);
		return 0;
	case SB_CTL_KILL:
	case SB_CTL_STARTED:
		m->cmd = sb_rd_le32(rd);
		return 0;
	case SB_CTL_READY:
		get_bytes(rd, &m->text, &m->text_len);
		return 0;
	case SB_CTL_EXITED:
		return parse_exited(rd, m);
	case SB_CTL_FAILED:
		m->value = sb_rd_le32(rd);
		get_bytes(rd, &m->text, &m->text_len);
		return 0;
	case SB_CTL_TIME:
		m->time_ns = sb_rd_le64(rd);
		return m->time_ns >= 1 && m->time_ns <= INT64_MAX ? 0 : -EBADMSG;
	case SB_CTL_EXEC_EVENT:
		return parse_event(rd, m);
	case SB_CTL_SHUTDOWN:
	case SB_CTL_BYE:
		return 0;
	case SB_CTL_NONE:
	default:
		return -EBADMSG;
	}
}

int sb_ctl_parse(const uint8_t *p, size_t len, struct sb_ctl *ret)
{
	struct sb_rd rd = { .p = p, .len = len };
	struct sb_ctl m = { 0 };
	int r;

	if (len > SB_CTL_MAX)
		return -EBADMSG;
	m.type = sb_rd_u8(&rd);
	r = parse_body(&rd, &m);
	if (r < 0)
		return r;
	r = sb_rd_end(&rd);
	if (r < 0)
		return r;
	*ret = m;
	return 0;
}
