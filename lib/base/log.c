#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *program = "sendbox";
static bool debug_on;

void sb_log_init(const char *name)
{
	program = name;
	/* executed by descriptor, a program is called after the descriptor's number */
	(void)prctl(PR_SET_NAME, name, 0, 0, 0);
}

void sb_log_set_debug(bool on)
{
	debug_on = on;
}

bool sb_log_debug_on(void)
{
	return debug_on;
}

static void emit(const char *fmt, va_list ap) SB_PRINTF(1, 0);
static void emit(const char *fmt, va_list ap)
{
	char text[1024];
	char line[4200];
	size_t n;
	int r;

	r = vsnprintf(text, sizeof(text), fmt, ap);
	if (r < 0)
		return;
	r = snprintf(line, 64, "%.50s: ", program);
	n = r < 0 ? 0 : (size_t)r;
	for (const char *p = text; *p && n + 5 < sizeof(line); p++) {
		unsigned char c = (unsigned char)*p;

		if (c < 0x20 || c >= 0x7f) {
			(void)snprintf(line + n, 5, "\\x%02x", c);
			n += 4;
		} else {
			line[n++] = (char)c;
		}
	}
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* a lost log line is not an error of the program */
}

void sb_log(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(fmt, ap);
	va_end(ap);
}

void sb_debug(const char *fmt, ...)
{
	va_list ap;

	if (!debug_on)
		return;
	va_start(ap, fmt);
	emit(fmt, ap);
	va_end(ap);
}
