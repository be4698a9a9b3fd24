/* Every message of an instance's socket: the good one, and each way in which it can be off. */
#include "base/mem.h"
#include "t.h"
#include "wire/attach.h"

static const struct sb_ipc_msg empty;

static struct sb_ipc_msg make(uint16_t type, const void *p, size_t len)
{
	struct sb_ipc_msg m = empty;

	m.type = type;
	m.len = (uint32_t)len;
	if (len > 0)
		memcpy(m.data, p, len);
	return m;
}

static int check(uint16_t type, const void *p, size_t len, enum sb_attach_side from)
{
	struct sb_ipc_msg m = make(type, p, len);

	return sb_attach_check(&m, from);
}

/* Good as it is; not a byte shorter, not one longer, not with a descriptor, not from the other side. */
static void exact(uint16_t type, const void *p, size_t len, enum sb_attach_side from)
{
	uint8_t more[SB_IPC_MAX_LEN] = { 0 };
	struct sb_ipc_msg m = make(type, p, len);

	CHECK_EQ(sb_attach_check(&m, from), 0);
	m.n_fds++;
	CHECK_EQ(sb_attach_check(&m, from), -EBADMSG);
	if (len > 0) {
		memcpy(more, p, len);
		CHECK_EQ(check(type, more, len - 1, from), -EBADMSG);
	}
	CHECK_EQ(check(type, more, len + 1, from), -EBADMSG);
	CHECK_EQ(check(type, p, len, from == SB_ATTACH_FROM_CLIENT ? SB_ATTACH_FROM_HOLDER
								   : SB_ATTACH_FROM_CLIENT), -EBADMSG);
}

#define CLIENT(type, m) check((type), &(m), sizeof(m), SB_ATTACH_FROM_CLIENT)
#define HOLDER(type, m) check((type), &(m), sizeof(m), SB_ATTACH_FROM_HOLDER)

TEST(hello)
{
	struct sb_attach_hello h = { .version = 1, .flags = 15, .rows = 24, .cols = 80 };

	exact(SB_ATT_HELLO, &h, sizeof(h), SB_ATTACH_FROM_CLIENT);
	h.rows = h.cols = 0;
	CHECK_EQ(CLIENT(SB_ATT_HELLO, h), 0);
	h.cols = 80; /* half a size */
	CHECK_EQ(CLIENT(SB_ATT_HELLO, h), -EBADMSG);
	h = (struct sb_attach_hello){ .version = 2 };
	CHECK_EQ(CLIENT(SB_ATT_HELLO, h), -EBADMSG);
	h = (struct sb_attach_hello){ .version = 1, .flags = 32 };
	CHECK_EQ(CLIENT(SB_ATT_HELLO, h), -EBADMSG);
	h = (struct sb_attach_hello){ .version = 1, .reserved = 1 };
	CHECK_EQ(CLIENT(SB_ATT_HELLO, h), -EBADMSG);
}

TEST(empty_ones)
{
	exact(SB_ATT_EOF, NULL, 0, SB_ATTACH_FROM_CLIENT);
	exact(SB_ATT_DETACH, NULL, 0, SB_ATTACH_FROM_CLIENT);
}

static void data(uint16_t type, enum sb_attach_side from)
{
	static const uint8_t most[SB_ATTACH_DATA];
	struct sb_ipc_msg m = make(type, most, 1);

	CHECK_EQ(sb_attach_check(&m, from), 0);
	CHECK_EQ(check(type, most, sizeof(most), from), 0);
	CHECK_EQ(check(type, most, 0, from), -EBADMSG);
	m.n_fds = 1;
	CHECK_EQ(sb_attach_check(&m, from), -EBADMSG);
	m = make(type, most, 1);
	m.len = SB_ATTACH_DATA + 1;
	CHECK_EQ(sb_attach_check(&m, from), -EBADMSG);
}

TEST(data_of_streams)
{
	data(SB_ATT_INPUT, SB_ATTACH_FROM_CLIENT);
	data(SB_ATT_STDOUT, SB_ATTACH_FROM_HOLDER);
	data(SB_ATT_STDERR, SB_ATTACH_FROM_HOLDER);
	data(SB_ATT_NOTE, SB_ATTACH_FROM_HOLDER);
	CHECK_EQ(check(SB_ATT_INPUT, "x", 1, SB_ATTACH_FROM_HOLDER), -EBADMSG);
	CHECK_EQ(check(SB_ATT_STDOUT, "x", 1, SB_ATTACH_FROM_CLIENT), -EBADMSG);
}

TEST(credit)
{
	static const struct {
		uint32_t stream;
		uint32_t bytes;
		int client;
		int holder;
	} cases[] = {
		{ 0, 1, -EBADMSG, 0 },	       { 0, 65536, -EBADMSG, 0 },
		{ 1, 1, 0, -EBADMSG },	       { 2, 65536, 0, -EBADMSG },
		{ 1, 0, -EBADMSG, -EBADMSG },  { 1, 65537, -EBADMSG, -EBADMSG },
		{ 0, 0, -EBADMSG, -EBADMSG },  { 0, 65537, -EBADMSG, -EBADMSG },
		{ 3, 1, -EBADMSG, -EBADMSG },  { 2, UINT32_MAX, -EBADMSG, -EBADMSG },
		{ UINT32_MAX, 1, -EBADMSG, -EBADMSG },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		const struct sb_attach_credit c = { cases[i].stream, cases[i].bytes };

		CHECK_EQ(CLIENT(SB_ATT_CREDIT, c), cases[i].client);
		CHECK_EQ(HOLDER(SB_ATT_CREDIT, c), cases[i].holder);
	}
}

TEST(commands)
{
	struct sb_ipc_run run = { .terminals = 7 };
	struct sb_ipc_msg m = make(SB_ATT_EXEC, &run, sizeof(run));

	for (uint16_t n = 0; n < 6; n++) {
		m.n_fds = n;
		CHECK_EQ(sb_attach_check(&m, SB_ATTACH_FROM_CLIENT), n == 4 ? 0 : -EBADMSG);
	}
	m.n_fds = 4;
	CHECK_EQ(sb_attach_check(&m, SB_ATTACH_FROM_HOLDER), -EBADMSG);
	run.cmd = 1; /* numbers are the holder's to give */
	m = make(SB_ATT_EXEC, &run, sizeof(run));
	m.n_fds = 4;
	CHECK_EQ(sb_attach_check(&m, SB_ATTACH_FROM_CLIENT), -EBADMSG);
	run = (struct sb_ipc_run){ .terminals = 8 };
	m = make(SB_ATT_EXEC, &run, sizeof(run));
	m.n_fds = 4;
	CHECK_EQ(sb_attach_check(&m, SB_ATTACH_FROM_CLIENT), -EBADMSG);
}

TEST(close_and_skipped)
{
	struct sb_attach_stream s = { .stream = 1 };
	const struct sb_attach_skipped skipped = { UINT64_MAX };

	exact(SB_ATT_CLOSE, &s, sizeof(s), SB_ATTACH_FROM_CLIENT);
	exact(SB_ATT_SKIPPED, &skipped, sizeof(skipped), SB_ATTACH_FROM_HOLDER);
	s.stream = 2;
	CHECK_EQ(CLIENT(SB_ATT_CLOSE, s), 0);
	s.stream = 0;
	CHECK_EQ(CLIENT(SB_ATT_CLOSE, s), -EBADMSG);
	s.stream = 3;
	CHECK_EQ(CLIENT(SB_ATT_CLOSE, s), -EBADMSG);
	s = (struct sb_attach_stream){ .stream = 1, .reserved = 1 };
	CHECK_EQ(CLIENT(SB_ATT_CLOSE, s), -EBADMSG);
}

TEST(signals_and_sizes)
{
	struct sb_ipc_signal sig = { .signo = 15 };
	struct sb_ipc_resize size = { .rows = 24, .cols = 80 };

	exact(SB_IPC_SIGNAL, &sig, sizeof(sig), SB_ATTACH_FROM_CLIENT);
	exact(SB_IPC_CANCEL, &sig, sizeof(sig), SB_ATTACH_FROM_CLIENT);
	exact(SB_IPC_RESIZE, &size, sizeof(size), SB_ATTACH_FROM_CLIENT);
	sig.signo = 0;
	CHECK_EQ(CLIENT(SB_IPC_SIGNAL, sig), -EBADMSG);
	sig.signo = 65;
	CHECK_EQ(CLIENT(SB_IPC_CANCEL, sig), -EBADMSG);
	sig = (struct sb_ipc_signal){ .cmd = 1, .signo = 9 }; /* another client's command */
	CHECK_EQ(CLIENT(SB_IPC_SIGNAL, sig), -EBADMSG);
	size.cmd = 1;
	CHECK_EQ(CLIENT(SB_IPC_RESIZE, size), -EBADMSG);
}

TEST(of_the_holder)
{
	struct sb_attach_welcome w = { .version = 1, .tty = 1, .started = 1 };
	struct sb_ipc_failed f = { 0 };
	struct sb_ipc_done d = { 0 };
	const struct sb_ipc_started started = { 0 };
	const struct sb_ipc_exited exited = { 0 };

	exact(SB_ATT_WELCOME, &w, sizeof(w), SB_ATTACH_FROM_HOLDER);
	exact(SB_ATT_REFUSED, &f, sizeof(f), SB_ATTACH_FROM_HOLDER);
	exact(SB_IPC_DONE, &d, sizeof(d), SB_ATTACH_FROM_HOLDER);
	exact(SB_IPC_STARTED, &started, sizeof(started), SB_ATTACH_FROM_HOLDER);
	exact(SB_IPC_EXITED, &exited, sizeof(exited), SB_ATTACH_FROM_HOLDER);
	w.tty = 2;
	CHECK_EQ(HOLDER(SB_ATT_WELCOME, w), -EBADMSG);
	w = (struct sb_attach_welcome){ .version = 1, .started = 2 };
	CHECK_EQ(HOLDER(SB_ATT_WELCOME, w), -EBADMSG);
	w = (struct sb_attach_welcome){ .version = 0 };
	CHECK_EQ(HOLDER(SB_ATT_WELCOME, w), -EBADMSG);
	/* texts end */
	memset(f.text, 'x', sizeof(f.text));
	CHECK_EQ(HOLDER(SB_ATT_REFUSED, f), -EBADMSG);
	memset(d.text, 'x', sizeof(d.text));
	CHECK_EQ(HOLDER(SB_IPC_DONE, d), -EBADMSG);
}

/* What neither side may say, most messages of wire/ipc.h among it. No fixed message has three bytes. */
TEST(other_types)
{
	static const uint8_t zeroes[3];

	for (uint32_t type = 0; type <= UINT16_MAX; type++) {
		bool text = type == SB_ATT_STDOUT || type == SB_ATT_STDERR || type == SB_ATT_NOTE;

		CHECK_EQ(check((uint16_t)type, zeroes, 3, SB_ATTACH_FROM_CLIENT),
			 type == SB_ATT_INPUT ? 0 : -EBADMSG);
		CHECK_EQ(check((uint16_t)type, zeroes, 3, SB_ATTACH_FROM_HOLDER), text ? 0 : -EBADMSG);
	}
	CHECK_EQ(check(SB_IPC_NET_EVENT, zeroes, 0, SB_ATTACH_FROM_HOLDER), -EBADMSG);
	CHECK_EQ(check(SB_IPC_EXEC_EVENT, zeroes, 0, SB_ATTACH_FROM_HOLDER), -EBADMSG);
	CHECK_EQ(check(SB_IPC_SSH_EVENT, zeroes, 0, SB_ATTACH_FROM_HOLDER), -EBADMSG);
}
