#ifndef SB_WIRE_HTTP1_H
#define SB_WIRE_HTTP1_H
/*
 * HTTP/1 messages as a security proxy must read them (RFC 9112, 9110): one unambiguous reading or
 * a refusal. Incremental, pure, bounded; nothing is allocated.
 *
 * Refused: bare CR or LF, obs-fold, space before the colon, NUL and control bytes, a field name
 * that is no token, Content-Length with Transfer-Encoding, several or differing or signed or
 * non-decimal lengths, any Transfer-Encoding but exactly one "chunked", HTTP/1.0 with
 * Transfer-Encoding, missing or several Host fields (1.1), userinfo in a target or Host, malformed
 * chunk sizes, chunk extensions longer than 256 bytes, heads larger than SB_HTTP_HEAD_MAX.
 */
#include <sys/types.h>

#include "base/mem.h"

#define SB_HTTP_HEAD_MAX 65536
#define SB_HTTP_MAX_FIELDS 200

struct sb_http_str { /* borrowed from the input */
	const char *p;
	size_t len;
};
enum sb_http_form {
	SB_HTTP_NO_FORM = 0,
	SB_HTTP_ORIGIN,    /* /path?query */
	SB_HTTP_ABSOLUTE,  /* http://host[:port]/path */
	SB_HTTP_AUTHORITY, /* CONNECT host:port */
	SB_HTTP_ASTERISK,  /* OPTIONS * */
};
enum sb_http_body {
	SB_HTTP_NO_BODY = 0,
	SB_HTTP_LENGTH,
	SB_HTTP_CHUNKED,
	SB_HTTP_UNTIL_CLOSE, /* responses only */
};
struct sb_http_request {
	size_t head_len;         /* bytes of the head with its empty line */
	struct sb_http_str method;
	struct sb_http_str target;
	uint8_t minor;           /* HTTP/1.minor: 0 or 1 */
	enum sb_http_form form;
	struct sb_http_str scheme;    /* ABSOLUTE: http or https (any case) */
	struct sb_http_str authority; /* ABSOLUTE, AUTHORITY: host[:port], no userinfo */
	struct sb_http_str path;      /* ORIGIN: target; ABSOLUTE: from the path on (may be empty) */
	bool has_host;
	struct sb_http_str host;      /* Host field: host[:port] */
	enum sb_http_body body;
	uint64_t length;         /* SB_HTTP_LENGTH */
	bool close;              /* the connection ends after this exchange */
	bool upgrade;            /* Connection: upgrade with an Upgrade field */
	struct sb_http_str upgrade_to; /* value of Upgrade */
	bool expect_continue;
	size_t n_fields;
	struct { /* position in the input of every field, in order; the line with its CRLF */
		struct sb_http_str name;
		struct sb_http_str value; /* without surrounding whitespace */
		struct sb_http_str line;
	} fields[SB_HTTP_MAX_FIELDS];
};
#define SB_HTTP_MORE 1
/*
 * sb_http_request_parse - @p: bytes from the start of the request (one leading CRLF is not
 * skipped: it is refused)
 * Return: 0; SB_HTTP_MORE; -EPROTO when this is certainly no HTTP/1 request line; -EBADMSG for
 * what must be refused; -E2BIG for a head over the limit. @why: static text for the last two.
 */
SB_MUST_CHECK int sb_http_request_parse(const char *p, size_t len, struct sb_http_request *ret,
					const char **why);

struct sb_http_response {
	size_t head_len;
	uint16_t status;
	uint8_t minor;
	enum sb_http_body body; /* as if for GET: the caller knows HEAD, CONNECT, 1xx, 204, 304 */
	uint64_t length;
	bool close;
	bool upgrade;
};
SB_MUST_CHECK int sb_http_response_parse(const char *p, size_t len, struct sb_http_response *ret,
					 const char **why);

/* A body going by, nothing is changed. */
struct sb_http_flow {
	enum sb_http_body body;
	uint64_t left;      /* bytes of data until the next decision */
	uint8_t state;
	uint32_t line_len;
	uint32_t trailer_len;
	bool done;
};
void sb_http_flow_init(struct sb_http_flow *f, enum sb_http_body body, uint64_t length);
/* How many of the next @len bytes belong to the body (framing included); f->done when it is
 * complete. Return: 0..len; -EBADMSG. */
SB_MUST_CHECK ssize_t sb_http_flow_take(struct sb_http_flow *f, const char *p, size_t len,
					const char **why);

/*
 * sb_http_authority - split "host", "host:port", "[v6]:port" strictly
 * @ret_host: borrowed; brackets dropped (then *ret_v6). @ret_port: 0 when there is none; decimal
 * 1..65535 without sign, space or leading zero.
 * Return: 0; -EINVAL (userinfo, empty host, junk)
 */
SB_MUST_CHECK int sb_http_authority(const struct sb_http_str *s, struct sb_http_str *ret_host,
				    bool *ret_v6, uint16_t *ret_port);
bool sb_http_str_is(const struct sb_http_str *s, const char *word); /* case-insensitive */

#endif
