/* Around the connections: amendments that must not work, DNS, deadlines, failing calls. */
#include "rig.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "wire/net_hello.h"

static struct rig r;

static bool begin(enum sb_provider_id provider)
{
	if (!rig_init(&r, provider))
		return false;
	(void)rig_pin(&r, "web.example", WEB);
	return rig_rule(&r, "web.example:443+80") && rig_rule(&r, "web.example:5000/any") &&
	       rig_start(&r);
}

TEST(amendments_that_are_not_ours)
{
	struct sb_plan_net add = { .mode = SB_NET_FILTER };
	struct sb_net_amend a = { .seq = 1 };
	uint8_t other[64];
	uint8_t pub[32];
	uint8_t sig[64];
	char *bytes = NULL;
	size_t len = 0;

	if (!begin(SB_PROVIDER_NAMESPACE))
		return;
	a.allow = add.rules;
	CHECK_EQ(rig_amend(&r, 2, "new.example", NULL), -ESTALE);
	/* for another session, signed well */
	memset(a.session, 0xee, sizeof(a.session));
	{
		char host[] = "new.example";
		char from[] = "test";
		struct sb_net_rule rule = { .host = host, .port_lo = 443, .port_hi = 443,
					    .proto = SB_PROTO_HTTPS, .from = from };

		a.allow = &rule;
		a.n_allow = 1;
		REQUIRE(sb_net_amend_write(&a, &bytes, &len) == 0);
	}
	sb_sign(bytes, len, r.secret, sig);
	CHECK_EQ(gate_amend(&r.g, sig, bytes, len, NULL), -EKEYREJECTED);
	free(bytes);
	/* for this one, by another key */
	memcpy(a.session, r.g.plan->session, sizeof(a.session));
	{
		char host[] = "new.example";
		char from[] = "test";
		struct sb_net_rule rule = { .host = host, .port_lo = 443, .port_hi = 443,
					    .proto = SB_PROTO_HTTPS, .from = from };

		a.allow = &rule;
		REQUIRE(sb_net_amend_write(&a, &bytes, &len) == 0);
	}
	sb_sign_keypair(pub, other);
	sb_sign(bytes, len, other, sig);
	CHECK_EQ(gate_amend(&r.g, sig, bytes, len, NULL), -EKEYREJECTED);
	sb_sign(bytes, len, r.secret, sig);
	bytes[len - 2] ^= 1;
	CHECK_EQ(gate_amend(&r.g, sig, bytes, len, NULL), -EKEYREJECTED);
	CHECK_EQ(gate_amend(&r.g, sig, bytes, SB_NET_AMEND_MAX + 1, NULL), -EMSGSIZE);
	CHECK_EQ(gate_amend(&r.g, sig, bytes, 0, NULL), -EMSGSIZE);
	bytes[len - 2] ^= 1;
	CHECK_EQ(gate_amend(&r.g, sig, bytes, len, NULL), 0);
	CHECK_EQ(r.g.amended, 1);
	CHECK_EQ(rig_count(&r, SB_NET_EV_AMEND), 1);
	free(bytes);
	rig_done(&r);
}

/* A question for a name that is not allowed: "no such name", with the same id. */
static const uint8_t question[] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 'e', 'v', 'i',
				    'l',  7,	'e', 'x', 'a', 'm', 'p', 'l', 'e', 0, 0, 1, 0, 1 };

static void check_answer(int fd, size_t head)
{
	uint8_t got[512];

	CHECK(rig_read(&r, fd, got, head + 12) == head + 12);
	CHECK_MEM(got + head, "\x12\x34", 2);
	CHECK_EQ(got[head + 3] & 15, 3);
}

TEST(dns_over_tcp_to_any_address)
{
	uint8_t msg[64] = { 0, sizeof(question) };
	int cl;

	if (!begin(SB_PROVIDER_NAMESPACE))
		return;
	cl = rig_dial(&r, "8.8.8.8", 53);
	memcpy(msg + 2, question, sizeof(question));
	rig_send(&r, cl, msg, sizeof(question) + 2);
	check_answer(cl, 2);
	CHECK_EQ(rig_count(&r, SB_NET_EV_CONNECT), 0);
	CHECK_EQ(r.g.n_conns, 0);
	sb_fd_close(&cl);
	rig_spin(&r, 20);
	rig_done(&r);
}

/* The first question in one piece with the hello: not a byte of it is lost. */
TEST(dns_stream_of_a_microvm)
{
	struct sb_net_hello h = { .kind = SB_NET_HELLO_DNS };
	uint8_t msg[100];
	size_t n = SB_NET_HELLO_LEN;
	int cl;

	if (!begin(SB_PROVIDER_MICROVM))
		return;
	sb_net_hello_write(&h, msg);
	memcpy(msg + n, (const uint8_t[4]){ sizeof(question), 0, 7, 0 }, 4);
	memcpy(msg + n + 4, question, sizeof(question));
	cl = rig_front_stream(&r);
	rig_send(&r, cl, msg, n + 4 + sizeof(question));
	check_answer(cl, 4);
	CHECK_EQ(r.g.n_conns, 0);
	sb_fd_close(&cl);
	rig_spin(&r, 20);
	rig_done(&r);
}

/* Who does not say whom he wants is not waited for. */
TEST(deadlines)
{
	static const struct {
		const char *to;
		uint16_t port;
		const char *bytes;
		enum sb_net_reason reason;
	} cases[] = {
		{ "web.example", 443, "", SB_NET_IDLE },
		{ "web.example", 443, "\x16\x03\x01", SB_NET_IDLE },
		{ "web.example", 80, "", SB_NET_IDLE },
		{ "web.example", 80, "GET / HTTP/1.1\r\nHost:", SB_NET_IDLE },
		{ "127.0.0.1", SB_NET_PROXY_PORT, "CONNECT", SB_NET_OK },
	};
	uint64_t usual = conn_look_ns;

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		char buf[1024];
		int srv;
		int cl;

		if (!begin(SB_PROVIDER_NAMESPACE))
			return;
		conn_look_ns = 100000000;
		srv = rig_serve("0.0.0.0", cases[i].port);
		cl = rig_dial(&r, cases[i].to, cases[i].port);
		rig_say(&r, cl, cases[i].bytes);
		(void)rig_rest(&r, cl, buf, sizeof(buf));
		if (cases[i].port == 80 && cases[i].bytes[0])
			CHECK_EQ(strncmp(buf, "HTTP/1.1 408 ", 13), 0);
		if (cases[i].reason != SB_NET_OK)
			CHECK(rig_refused(&r, cases[i].reason));
		sb_fd_close(&cl);
		rig_spin(&r, 20);
		CHECK_EQ(r.g.n_conns, 0);
		sb_fd_close(&srv);
		rig_done(&r);
		conn_look_ns = usual;
	}
}

static unsigned int nth;

static void arm(void)
{
	t_fault_arm(nth);
}

/* Every call that can fail, in the midst of a connection: refused or cut, nothing is left. */
TEST(failing_calls)
{
	T_EVERY_FAULT(n) {
		bool fired;
		char buf[64];
		int srv;
		int cl;
		int up;

		if (!begin(n % 2 ? SB_PROVIDER_NAMESPACE : SB_PROVIDER_MICROVM))
			return;
		srv = rig_serve(WEB, 80);
		nth = (n + 1) / 2;
		rig_before = arm;
		cl = (n % 2 ? rig_dial : rig_stream)(&r, "web.example", 80);
		rig_spin(&r, 3);
		(void)send(cl, "GET / HTTP/1.1\r\nHost: web.example\r\n\r\n", 37, MSG_NOSIGNAL);
		rig_spin(&r, 3);
		up = accept4(srv, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (up >= 0)
			(void)send(up, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 41,
				   MSG_NOSIGNAL);
		rig_spin(&r, 3);
		(void)recv(cl, buf, sizeof(buf), 0);
		sb_fd_close(&cl);
		sb_fd_close(&up);
		rig_spin(&r, 5);
		fired = t_fault_fired();
		rig_before = NULL;
		CHECK_EQ(r.g.n_conns, 0);
		sb_fd_close(&srv);
		rig_done(&r);
		if (!fired && n % 2 == 0)
			break;
	}
}
