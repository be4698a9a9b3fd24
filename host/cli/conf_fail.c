#include "conf_fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli.h"
#include "plan_show.h"

int conf_flush(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	cli_error("cannot write to standard output");
	return SB_EXIT_WRITE;
}

void conf_say(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	plan_put(stdout, text);
	(void)putchar('\n');
	free(text);
}

int conf_print(json_t *o, int status)
{
	char *s = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	if (!s) {
		cli_error("out of memory");
		return SB_EXIT_INTERNAL;
	}
	(void)puts(s);
	free(s);
	return conf_flush(status);
}

int conf_fail(bool json, int status, const char *code, const char *path, const char *fmt, ...)
{
	char text[1000];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!json) {
		cli_error("%s", text);
		return status;
	}
	return conf_print(json_pack("{s:i,s:b,s:i,s:[{s:s,s:s,s:s}]}", "schema_version", 1, "ok", 0,
				    "exit_code", status, "diagnostics", "code", code, "path", path,
				    "message", text), status);
}

int conf_fail_problems(bool json, int status, const struct problems *p)
{
	char *text = NULL;

	if (!json) {
		problems_print(p);
		return status;
	}
	if (problems_json(p, status, &text) < 0) {
		cli_error("out of memory");
		return SB_EXIT_INTERNAL;
	}
	(void)puts(text);
	free(text);
	return conf_flush(status);
}
