#ifndef SB_HOST_CONFIG_DOC_YAML_H
#define SB_HOST_CONFIG_DOC_YAML_H
/* The parts of the YAML reader; see doc_yaml.c. */
#include "doc_i.h"

enum yaml_what {
	YAML_NONE = 0,
	YAML_PLAIN,   /* a scalar that may mean a number and the like */
	YAML_QUOTED,  /* one that is a text */
	YAML_NOTHING, /* a node that was refused; keeps keys and values in step */
	YAML_SEQ,
	YAML_MAP,
	YAML_CLOSE,
	YAML_PROBLEM, /* text: what */
};
struct yaml_event {
	enum yaml_what what;
	uint32_t line; /* from 1 */
	uint32_t col;
	const char *text; /* borrowed, need not end with NUL */
	size_t len;
};
/* Return: 0; < 0: stop, and return it. */
typedef int yaml_sink(void *arg, const struct yaml_event *e);

/* Return: 0; -EBADMSG, after a problem was told; what @sink said; -ENOMEM. */
SB_MUST_CHECK int yaml_parse(const char *bytes, size_t len, yaml_sink *sink, void *arg);
/* The sink that makes the tree of a struct doc_build. */
SB_MUST_CHECK int yaml_build(void *arg, const struct yaml_event *e);
/*
 * yaml_jailed - yaml_parse in a child without rights, yaml_build here
 * Blocks: until the child is done, at most YAML_CPU_S of processor time.
 * Return: as yaml_parse; -errno: no child, no jail.
 */
#define YAML_CPU_S 10
SB_MUST_CHECK int yaml_jailed(struct doc_build *b, const char *bytes, size_t len);
/* The records of @fd, up to its end, into @b. Return: as yaml_jailed; -EPIPE: it broke off. */
SB_MUST_CHECK int yaml_records(struct doc_build *b, int fd);

#endif
