#include "exec/filter.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/syscalls.h"
#include "exec/arch.h"

#include "seccomp-filter.h"


#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static const struct sock_fprog none;

struct sock_fprog sb_filter_profile(enum sb_profile profile)
{
	switch (profile) {
	case SB_PROFILE_STRICT:
		return (struct sock_fprog){ SB_ARRAY_LEN(strict_filter), strict_filter };
	case SB_PROFILE_DEFAULT:
		return (struct sock_fprog){ SB_ARRAY_LEN(default_filter), default_filter };
	case SB_PROFILE_BUILD:
		return (struct sock_fprog){ SB_ARRAY_LEN(build_filter), build_filter };
	case SB_PROFILE_NONE:
	default:
		return none;
	}
}

struct sock_fprog sb_filter_judge(void)
{
	return (struct sock_fprog){ SB_ARRAY_LEN(judge_filter), judge_filter };
}

struct code {
	struct sock_filter *at;
	unsigned short n;
};

static void emit(struct code *c, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	c->at[c->n++] = (struct sock_filter){ code, jt, jf, k };
}

static void on_call(struct code *c, uint32_t nr, uint32_t action)
{
	emit(c, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr);
	emit(c, BPF_RET | BPF_K, 0, 0, action);
}

static bool allowed(const struct sock_fprog *f, int nr)
{
	const struct seccomp_data d = { .nr = nr, .arch = SB_THIS_ARCH };

	return sb_filter_eval(f, &d) == SECCOMP_RET_ALLOW;
}

static uint32_t ask(uint32_t action)
{
	bool refused = (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
		       (action & SECCOMP_RET_DATA) != ENOSYS;

	return refused ? SECCOMP_RET_USER_NOTIF : action;
}

/* @room: for the deny list of @plan, execve, execveat and the profile */
static int compose(const struct sb_plan *plan, unsigned int flags, const struct sock_fprog *base,
		   struct code *c, struct sb_err *err)
{
	uint32_t refuse = flags & SB_FILTER_ASK_REFUSED ? SECCOMP_RET_USER_NOTIF : REFUSE;

	emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(c, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SB_THIS_ARCH);
	emit(c, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	emit(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	for (char *const *name = plan->deny_syscalls; name && *name; name++) {
		int nr = sb_syscall_number(*name);

		if (nr == -ENOENT)
			return sb_err_set(err, -ENOENT, "there is no system call \"%.60s\"", *name);
		if ((flags & SB_FILTER_ASK_REFUSED) && (nr == SYS_sendmsg || nr == SYS_close))
			return sb_err_set(err, -ENOTSUP, "system call \"%s\" cannot be denied together "
					  "with log_blocked; take one of the two away", *name);
		if (nr >= 0)
			on_call(c, (uint32_t)nr, refuse);
	}
	if (flags & SB_FILTER_ASK_EXEC) {
		on_call(c, SYS_execve, SECCOMP_RET_USER_NOTIF);
		if (allowed(base, SYS_execveat))
			on_call(c, SYS_execveat, SECCOMP_RET_USER_NOTIF);
	}
	for (unsigned short i = 0; i < base->len; i++) {
		struct sock_filter f = base->filter[i];

		if (f.code == (BPF_RET | BPF_K) && (flags & SB_FILTER_ASK_REFUSED))
			f.k = ask(f.k);
		c->at[c->n++] = f;
	}
	return 0;
}

int sb_filter_make(const struct sb_plan *plan, unsigned int flags, struct sock_fprog *ret,
		   struct sb_err *err)
{
	struct sock_fprog base = sb_filter_profile(plan->profile);
	sb_autofree struct sock_filter *room = NULL;
	struct code c = { 0 };
	size_t n = 0;
	int r;

	if (base.len == 0)
		return sb_err_set(err, -EINVAL, "the plan names no profile");
	while (plan->deny_syscalls && plan->deny_syscalls[n])
		n++;
	if (n > SB_PLAN_MAX_SYSCALLS)
		return sb_err_set(err, -EINVAL, "too many denied system calls");
	c.at = room = calloc(4 + 2 * (n + 2) + base.len, sizeof(*room));
	if (!room)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = compose(plan, flags, &base, &c, err);
	if (r < 0)
		return r;
	*ret = (struct sock_fprog){ .len = c.n, .filter = sb_take(&room) };
	return 0;
}

static bool load(const struct seccomp_data *d, uint32_t off, uint32_t *ret)
{
	if (off > sizeof(*d) - sizeof(*ret) || off % sizeof(*ret) != 0)
		return false;
	memcpy(ret, (const char *)d + off, sizeof(*ret));
	return true;
}

uint32_t sb_filter_eval(const struct sock_fprog *f, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < f->len; pc++) { /* jumps go forward only, so it ends */
		const struct sock_filter *i = &f->filter[pc];
		bool yes = false;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (!load(d, i->k, &a))
				return SECCOMP_RET_KILL_PROCESS;
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JA:
			if (i->k >= f->len)
				return SECCOMP_RET_KILL_PROCESS;
			pc += i->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = a >= i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = (a & i->k) != 0;
			break;
		default:
			return SECCOMP_RET_KILL_PROCESS;
		}
		pc += yes ? i->jt : i->jf;
	}
	return SECCOMP_RET_KILL_PROCESS;
}
