#include "wire/attach.h"

#include <errno.h>
#include <string.h>

static bool text_ends(const char *p, size_t cap)
{
	return memchr(p, 0, cap) != NULL;
}

static bool hello_ok(const struct sb_attach_hello *h)
{
	return h && h->version == SB_ATTACH_VERSION && (h->flags & ~SB_ATTACH_FLAGS) == 0 &&
	       h->reserved == 0 && (h->rows == 0) == (h->cols == 0);
}

static bool credit_ok(const struct sb_attach_credit *c, bool input)
{
	return c && c->bytes >= 1 && c->bytes <= SB_ATTACH_WINDOW &&
	       (input ? c->stream == 0 : c->stream == 1 || c->stream == 2);
}

static bool data_ok(const struct sb_ipc_msg *msg)
{
	return msg->n_fds == 0 && msg->len >= 1 && msg->len <= SB_ATTACH_DATA;
}

static bool decide_ok(const struct sb_ipc_appr_decide *d)
{
	return d && text_ends(d->pattern, sizeof(d->pattern));
}

static bool question_ok(const struct sb_ipc_appr_question *q)
{
	return q && text_ends(q->subject, sizeof(q->subject)) && text_ends(q->rule, sizeof(q->rule));
}

static bool client_ok(const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_signal *sig = sb_ipc_get(msg, sizeof(*sig), 0);
	const struct sb_ipc_resize *size = sb_ipc_get(msg, sizeof(*size), 0);
	const struct sb_ipc_run *run = sb_ipc_get(msg, sizeof(*run), 4);
	const struct sb_attach_stream *s = sb_ipc_get(msg, sizeof(*s), 0);

	switch (msg->type) {
	case SB_ATT_HELLO:
		return hello_ok(sb_ipc_get(msg, sizeof(struct sb_attach_hello), 0));
	case SB_ATT_INPUT:
		return data_ok(msg);
	case SB_ATT_EOF:
	case SB_ATT_DETACH:
		return msg->len == 0 && msg->n_fds == 0;
	case SB_ATT_EXEC:
		return run && run->cmd == 0 && (run->terminals & ~7U) == 0;
	case SB_ATT_CLOSE:
		return s && (s->stream == 1 || s->stream == 2) && s->reserved == 0;
	case SB_ATT_CREDIT:
		return credit_ok(sb_ipc_get(msg, sizeof(struct sb_attach_credit), 0), false);
	case SB_IPC_APPR_DECIDE:
		return decide_ok(sb_ipc_get(msg, sizeof(struct sb_ipc_appr_decide), 0));
	case SB_IPC_RESIZE:
		return size && size->cmd == 0;
	case SB_IPC_SIGNAL:
	case SB_IPC_CANCEL:
		return sig && sig->cmd == 0 && sig->signo >= 1 && sig->signo <= 64;
	default:
		return false;
	}
}

static bool holder_ok(const struct sb_ipc_msg *msg)
{
	const struct sb_attach_welcome *w = sb_ipc_get(msg, sizeof(*w), 0);
	const struct sb_ipc_failed *f = sb_ipc_get(msg, sizeof(*f), 0);
	const struct sb_ipc_done *d = sb_ipc_get(msg, sizeof(*d), 0);
	const struct sb_ipc_net_event *ev;

	switch (msg->type) {
	case SB_ATT_WELCOME:
		return w && w->version == SB_ATTACH_VERSION && w->tty <= 1 && w->started <= 1;
	case SB_ATT_STDOUT:
	case SB_ATT_STDERR:
	case SB_ATT_NOTE:
		return data_ok(msg);
	case SB_ATT_CREDIT:
		return credit_ok(sb_ipc_get(msg, sizeof(struct sb_attach_credit), 0), true);
	case SB_ATT_SKIPPED:
		return sb_ipc_get(msg, sizeof(struct sb_attach_skipped), 0) != NULL;
	case SB_ATT_REFUSED:
		return f && text_ends(f->text, sizeof(f->text));
	case SB_IPC_STARTED:
		return sb_ipc_get(msg, sizeof(struct sb_ipc_started), 0) != NULL;
	case SB_IPC_EXITED:
		return sb_ipc_get(msg, sizeof(struct sb_ipc_exited), 0) != NULL;
	case SB_IPC_NET_EVENT:
		return sb_ipc_get_events(msg, &ev) > 0;
	case SB_IPC_EXEC_EVENT:
		return sb_ipc_get_exec_event(msg) != NULL;
	case SB_IPC_SSH_EVENT:
		return sb_ipc_get_ssh_event(msg) != NULL;
	case SB_IPC_APPR_QUESTION:
		return question_ok(sb_ipc_get(msg, sizeof(struct sb_ipc_appr_question), 0));
	case SB_IPC_APPR_CLOSED:
		return sb_ipc_get(msg, sizeof(struct sb_ipc_appr_closed), 0) != NULL;
	case SB_IPC_APPR_END:
		return f && text_ends(f->text, sizeof(f->text));
	case SB_IPC_DONE:
		return d && text_ends(d->text, sizeof(d->text));
	default:
		return false;
	}
}

int sb_attach_check(const struct sb_ipc_msg *msg, enum sb_attach_side from)
{
	bool ok = from == SB_ATTACH_FROM_CLIENT ? client_ok(msg) : holder_ok(msg);

	return ok ? 0 : -EBADMSG;
}
