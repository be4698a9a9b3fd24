/* A log in a folder of its own, for tests. */
#ifndef SB_TESTS_LOG_PLACE_H
#define SB_TESTS_LOG_PLACE_H
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "os/rmtree.h"
#include "store/audit_log.h"
#include "store/audit_verify.h"
#include "t.h"

struct place {
	char path[64];
	int dir;
	uint8_t pub[32];
	uint8_t sec[64];
};

static inline void place_make(struct place *p)
{
	(void)snprintf(p->path, sizeof(p->path), "/tmp/sb-log-XXXXXX");
	if (sb_crypto_init() < 0 || !mkdtemp(p->path))
		abort();
	p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir < 0)
		abort();
	sb_sign_keypair(p->pub, p->sec);
}

static inline void place_done(struct place *p)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	sb_fd_close(&p->dir);
	if (sb_rmtree(tmp, p->path + 5) < 0)
		abort();
	sb_fd_close(&tmp);
}

/* One batch of @n events named @who. Return: 0; -errno. */
static inline int place_write(struct sb_audit_log *l, const char *who, unsigned int n,
			      struct sb_err *err)
{
	int r = sb_audit_log_begin(l, err);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < n; i++) {
		struct sb_audit_event e = { .time_ns = 1000 + i, .session = { 1, 2, 3 },
					    .kind = SB_AUDIT_COMMAND, .action = "exec",
					    .verdict = SB_AUDIT_ALLOW, .subject = who };
		uint64_t seq;

		sb_audit_put_num(&e, "n", i);
		if (sb_audit_log_put(l, &e, &seq) < 0)
			abort();
	}
	return sb_audit_log_end(l, err);
}

static inline int place_verify(const struct place *p, struct sb_audit_report *rep)
{
	struct sb_audit_head h;
	int r = sb_audit_head_read(p->dir, p->pub, &h);

	if (r < 0 && r != -ENOENT)
		return r;
	return sb_audit_verify(p->dir, &h, r == 0 ? 1 : 0, 0, rep, NULL);
}
#endif
