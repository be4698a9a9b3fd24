#ifndef SB_WIRE_HTTP1_I_H
#define SB_WIRE_HTTP1_I_H
/* What the files of the HTTP/1 reader share. */
#include "wire/http1.h"

#define HTTP_LINE_MAX 16384 /* request or status line, without CRLF */

/* What fields say about the message and the connection, requests and responses alike. */
struct http_fields {
	struct sb_http_str host;
	struct sb_http_str upgrade_to;
	uint64_t length;
	unsigned int n_host;
	bool has_length;
	bool chunked;
	bool close;
	bool keep_alive;
	bool upgrade;
	bool has_upgrade;
	bool expect_continue;
};

bool http_is_token(char c);
/* Part of a field's value, a chunk extension: no control but the tab. */
bool http_is_text(char c);

/*
 * http_fields_parse - the lines from @at to the end of the head, @len, with its empty line
 * They are SB_HTTP_MAX_FIELDS at most. @positions: where to note them, or NULL; only its fields and
 * n_fields are written.
 * Return: 0; -EBADMSG
 */
SB_MUST_CHECK int http_fields_parse(const char *p, size_t len, size_t at, struct http_fields *ret,
				    struct sb_http_request *positions, const char **why);

#endif
