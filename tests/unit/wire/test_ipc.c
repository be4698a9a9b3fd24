#include "wire/ipc.h"
#include "t.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

TEST(message_with_descriptors)
{
	struct sb_ipc_msg m = { 0 };
	struct sb_ipc_resize out = { .cmd = 5, .rows = 24, .cols = 80 };
	const struct sb_ipc_resize *in;
	int before = t_open_fds();
	int sv[2];
	int fds[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	REQUIRE(pipe(fds) == 0);
	CHECK_EQ(sb_ipc_send(sv[0], SB_IPC_RESIZE, &out, sizeof(out), fds, 2), 0);
	CHECK_EQ(sb_ipc_recv(sv[1], &m), 0);
	CHECK_EQ(m.type, SB_IPC_RESIZE);
	CHECK_EQ(m.n_fds, 2);
	CHECK((fcntl(m.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
	CHECK(!sb_ipc_get(&m, sizeof(out), 1));
	CHECK(!sb_ipc_get(&m, sizeof(out) + 1, 2));
	in = sb_ipc_get(&m, sizeof(out), 2);
	REQUIRE(in);
	CHECK_EQ(in->cols, 80);
	sb_ipc_msg_done(&m);
	CHECK_EQ(m.data[4], 0); /* wiped */
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(sv[0]);
	CHECK_EQ(sb_ipc_recv(sv[1], &m), SB_IPC_EOF);
	(void)close(sv[1]);
	CHECK_EQ(t_open_fds(), before);
}

/* Raw packets against the table in ipc.h: u16 type, u16 descriptors, u32 length, all little-endian. */
TEST(malformed_packets)
{
	static const struct {
		const char *bytes;
		size_t len;
		int want;
	} cases[] = {
		{ "\x03\x00\x00\x00\x00\x00\x00\x00", 8, 0 },
		{ "\x03\x00\x00\x00\x02\x00\x00\x00zz", 10, 0 },
		{ "\x03\x00\x00\x00\x02\x00\x00\x00z", 9, -EBADMSG },
		{ "\x03\x00\x00\x00\x02\x00\x00\x00zzz", 11, -EBADMSG },
		{ "\x03\x00\x01\x00\x00\x00\x00\x00", 8, -EBADMSG }, /* no descriptor came along */
		{ "\x03\x00\x00\x00\x00\x00\x00", 7, -EBADMSG },
		{ "\x03\x00\x00\x00\xff\xff\xff\xff", 8, -EBADMSG },
	};
	int sv[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		struct sb_ipc_msg m = { 0 };

		CHECK_EQ(send(sv[0], cases[i].bytes, cases[i].len, 0), (ssize_t)cases[i].len);
		CHECK_EQ(sb_ipc_recv(sv[1], &m), cases[i].want);
		sb_ipc_msg_done(&m);
	}
	(void)close(sv[0]);
	(void)close(sv[1]);
}

TEST(too_large)
{
	static char big[SB_IPC_MAX_LEN + 1];

	CHECK_EQ(sb_ipc_send(-1, 1, big, sizeof(big), NULL, 0), -EMSGSIZE);
	CHECK_EQ(sb_ipc_send(-1, 1, big, 1, NULL, 0), -EBADF);
}
