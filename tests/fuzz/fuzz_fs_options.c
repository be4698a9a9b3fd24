/* Option specifications of sendbox-fs: NUL-separated arguments. */
#include <string.h>

#include "fs/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static char name[] = "sendbox-fs";
	char *argv[66] = { name };
	struct sb_err err = { 0 };
	struct fs_conf conf;
	char *text = malloc(len + 1);
	int argc = 1;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	for (size_t at = 0; at < len && argc < 65; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	fs_conf_init(&conf);
	if (fs_conf_parse(&conf, argc, argv, &err) == 0) {
		sb_assert(conf.kind != FS_ROOT_NONE && (conf.ro || conf.map_set));
		for (size_t i = 0; i < conf.n_leaves; i++)
			sb_assert(conf.leaves[i].path[0] != '/' && conf.leaves[i].fd >= 3);
	}
	fs_conf_done(&conf);
	free(text);
	return 0;
}
