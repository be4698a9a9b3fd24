/*
 * Load for bench_net.py, static so that it runs on the host and in a guest alike.
 *
 *   net_load serve PORT              HTTP server on 127.0.0.1: GET /N sends N bytes; keep-alive
 *   net_load relay PORT TO           bare splice relay 127.0.0.1:PORT -> 127.0.0.1:TO, no decision
 *   net_load get HOST PORT N TIMES [PROXY]    one GET /N on a fresh connection each: "us" a line
 *   net_load ask HOST PORT TIMES     TIMES small requests on one connection: mean "us"
 *   net_load rate HOST PORT SECONDS [PROXY]   fresh connections one after another on 8 processes
 *   net_load hold HOST PORT COUNT    open COUNT connections, say "held", wait for end of input
 *
 * PROXY: socks:PORT or connect:PORT on 127.0.0.1, or connect:env for what http_proxy says.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUF (256U << 10)
static char buf[BUF];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static int listen_on(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int one = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 4096) < 0)
		die("listen");
	return fd;
}

static void serve_one(int fd)
{
	char head[512];
	size_t have = 0;

	for (;;) {
		ssize_t n = recv(fd, head + have, sizeof(head) - 1 - have, 0);
		unsigned long long want;
		char *slash;
		int len;

		if (n <= 0)
			return;
		have += (size_t)n;
		head[have] = '\0';
		if (!strstr(head, "\r\n\r\n"))
			continue;
		slash = strchr(head, '/');
		want = slash ? strtoull(slash + 1, NULL, 10) : 0;
		len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n",
			       want);
		if (send(fd, head, (size_t)len, want > 0 ? MSG_MORE : 0) < 0)
			return;
		while (want > 0) {
			n = send(fd, buf, want < BUF ? want : BUF, MSG_NOSIGNAL);
			if (n <= 0)
				return;
			want -= (unsigned long long)n;
		}
		have = 0;
	}
}

/* Big answers want their own process; small ones come from a pool, so that fork is not measured. */
static void serve(int port)
{
	int l = listen_on(port);

	for (int i = 0; i < 64; i++)
		if (fork() == 0)
			break;
	for (;;) {
		int fd = accept(l, NULL, NULL);

		if (fd < 0)
			continue;
		serve_one(fd);
		(void)close(fd);
	}
}

static int dial_addr(const struct sockaddr *a, socklen_t len)
{
	int fd = socket(a->sa_family, SOCK_STREAM, 0);
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, a, len) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int dial_local(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };

	return dial_addr((struct sockaddr *)&a, sizeof(a));
}

struct target {
	struct sockaddr_storage addr; /* resolved once: names are measured elsewhere */
	socklen_t len;
	const char *host;
	int port;
	int proxy; /* port; 0 = none */
	int socks;
};

static void target(struct target *t, char **v, const char *proxy)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *ai;

	t->host = v[0];
	t->port = atoi(v[1]);
	t->proxy = 0;
	if (proxy && strcmp(proxy, "connect:env") == 0) {
		const char *text = getenv("http_proxy") ? getenv("http_proxy") : getenv("HTTP_PROXY");

		if (!text || !strrchr(text, ':'))
			die("http_proxy");
		t->proxy = atoi(strrchr(text, ':') + 1);
		return;
	}
	if (proxy) {
		t->socks = strncmp(proxy, "socks:", 6) == 0;
		t->proxy = atoi(strchr(proxy, ':') + 1);
		return;
	}
	if (getaddrinfo(v[0], v[1], &hint, &ai) != 0)
		die(v[0]);
	memcpy(&t->addr, ai->ai_addr, ai->ai_addrlen);
	t->len = ai->ai_addrlen;
	freeaddrinfo(ai);
}

static int expect(int fd, size_t n)
{
	char b[512];

	while (n > 0) {
		ssize_t r = recv(fd, b, n, 0);

		if (r <= 0)
			return -1;
		n -= (size_t)r;
	}
	return 0;
}

static int through_proxy(const struct target *t)
{
	int fd = dial_local(t->proxy);
	const char *auth = getenv("NET_AUTH");
	size_t len = strlen(t->host);
	char b[600];
	int n;

	if (fd < 0)
		return -1;
	if (t->socks) {
		(void)send(fd, "\5\1\0", 3, 0);
		if (expect(fd, 2) < 0)
			die("socks");
		n = snprintf(b, sizeof(b), "\5\1%c\3%c%s%c%c", 0, (int)len, t->host,
			     t->port >> 8, t->port & 255);
		(void)send(fd, b, (size_t)n, 0);
		return expect(fd, 10) < 0 ? -1 : fd;
	}
	n = snprintf(b, sizeof(b), "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n%s%s%s\r\n", t->host,
		     t->port, t->host, t->port, auth ? "Proxy-Authorization: Basic " : "",
		     auth ? auth : "", auth ? "\r\n" : "");
	(void)send(fd, b, (size_t)n, 0);
	for (size_t have = 0;;) {
		ssize_t r = recv(fd, b + have, 1, 0);

		if (r <= 0)
			return -1;
		have++;
		if (have >= 4 && memcmp(b + have - 4, "\r\n\r\n", 4) == 0)
			return b[9] == '2' ? fd : -1;
		if (have == sizeof(b))
			return -1;
	}
}

static int dial(const struct target *t)
{
	return t->proxy ? through_proxy(t) :
			  dial_addr((const struct sockaddr *)&t->addr, t->len);
}

static int ask(const struct target *t, int fd, unsigned long long want)
{
	char req[300];
	unsigned long long got = 0;
	char *body = NULL;
	int n;

	n = snprintf(req, sizeof(req), "GET /%llu HTTP/1.1\r\nHost: %s:%d\r\n\r\n", want, t->host,
		     t->port);
	if (send(fd, req, (size_t)n, MSG_NOSIGNAL) != n)
		return -1;
	while (!body || got < want) {
		ssize_t r = recv(fd, buf, BUF - 1, 0);

		if (r <= 0)
			break;
		if (body) {
			got += (unsigned long long)r;
			continue;
		}
		buf[r] = '\0';
		body = strstr(buf, "\r\n\r\n");
		if (!body)
			break;
		got = (unsigned long long)(r - (body + 4 - buf));
	}
	return body && got == want ? 0 : -1;
}

static int get(const struct target *t, unsigned long long want)
{
	int fd = dial(t);
	int r;

	if (fd < 0)
		return -1;
	r = ask(t, fd, want);
	(void)close(fd);
	return r;
}

static void relay_one(int from, int to)
{
	struct pollfd p[2] = { { from, POLLIN, 0 }, { to, POLLIN, 0 } };
	int pipes[2][2];

	for (int i = 0; i < 2; i++) {
		if (pipe2(pipes[i], O_NONBLOCK) < 0)
			die("pipe");
		(void)fcntl(pipes[i][0], F_SETPIPE_SZ, 1 << 20);
	}
	while (p[0].fd >= 0 || p[1].fd >= 0) {
		(void)poll(p, 2, -1);
		for (int i = 0; i < 2; i++) {
			int out = i == 0 ? to : from;
			ssize_t n;

			if (!p[i].revents)
				continue;
			n = splice(p[i].fd, NULL, pipes[i][1], NULL, 1 << 20, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			if (n < 0 && errno == EAGAIN)
				continue;
			if (n <= 0) {
				(void)shutdown(out, SHUT_WR);
				p[i].fd = -1;
				continue;
			}
			while (n > 0) {
				ssize_t w = splice(pipes[i][0], NULL, out, NULL, (size_t)n, SPLICE_F_MOVE);

				if (w <= 0)
					exit(0);
				n -= w;
			}
		}
	}
}

static void relay(int port, int to)
{
	int l = listen_on(port);

	for (int i = 0; i < 16; i++)
		if (fork() == 0)
			break;
	for (;;) {
		int a = accept(l, NULL, NULL);
		pid_t pid = fork();

		if (pid == 0) {
			int b = dial_local(to);

			if (b < 0)
				exit(1);
			relay_one(a, b);
			exit(0);
		}
		(void)close(a);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
	}
}

static void rate(const struct target *t, int seconds)
{
	int out[2];
	uint64_t total = 0;
	uint64_t one;

	if (pipe(out) < 0)
		die("pipe");
	for (int i = 0; i < 8; i++) {
		if (fork() == 0) {
			uint64_t end = now_ns() + (uint64_t)seconds * 1000000000U;
			uint64_t n = 0;

			while (now_ns() < end)
				if (get(t, 2) == 0)
					n++;
			(void)!write(out[1], &n, sizeof(n));
			exit(0);
		}
	}
	for (int i = 0; i < 8; i++) {
		if (read(out[0], &one, sizeof(one)) == sizeof(one))
			total += one;
	}
	printf("%llu\n", (unsigned long long)total / (unsigned long long)seconds);
}

int main(int argc, char **argv)
{
	struct target t = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "serve") == 0) {
		serve(atoi(argv[2]));
	} else if (argc == 4 && strcmp(argv[1], "relay") == 0) {
		relay(atoi(argv[2]), atoi(argv[3]));
	} else if (argc >= 6 && strcmp(argv[1], "get") == 0) {
		target(&t, argv + 2, argc > 6 ? argv[6] : NULL);
		for (int i = 0; i < atoi(argv[5]); i++) {
			uint64_t begin = now_ns();

			if (get(&t, strtoull(argv[4], NULL, 10)) < 0)
				die("get");
			printf("%.1f\n", (double)(now_ns() - begin) / 1000);
		}
	} else if (argc == 5 && strcmp(argv[1], "ask") == 0) {
		uint64_t begin;
		int fd;

		target(&t, argv + 2, NULL);
		fd = dial(&t);
		begin = now_ns(); /* one mean: a guest's clock may have steps of milliseconds */
		for (int i = 0; i < atoi(argv[4]); i++)
			if (fd < 0 || ask(&t, fd, 2) < 0)
				die("ask");
		printf("%.1f\n", (double)(now_ns() - begin) / 1000 / atoi(argv[4]));
	} else if (argc >= 5 && strcmp(argv[1], "rate") == 0) {
		target(&t, argv + 2, argc > 5 ? argv[5] : NULL);
		rate(&t, atoi(argv[4]));
	} else if (argc == 5 && strcmp(argv[1], "hold") == 0) {
		target(&t, argv + 2, NULL);
		for (int i = 0; i < atoi(argv[4]); i++)
			if (dial(&t) < 0)
				die("hold");
		printf("held\n");
		(void)fflush(stdout);
		(void)!read(0, buf, 1);
	} else {
		return 2;
	}
	return 0;
}
