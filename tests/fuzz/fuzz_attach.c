/* Messages of attach.sock: byte 0 is the side, 1 and 2 the type, 3 the number of descriptors, the rest
 * the payload. What is accepted is of that side, has its length, and its texts end. */
#include <stdlib.h>
#include <string.h>

#include "wire/attach.h"

static void must(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_ipc_msg m;
	const struct sb_attach_credit *c = (const void *)m.data;

	if (size < 4 || size - 4 > SB_IPC_MAX_LEN)
		return 0;
	m.type = (uint16_t)(data[1] | data[2] << 8);
	m.n_fds = data[3] & 7;
	m.len = (uint32_t)(size - 4);
	memset(m.data, 0xa5, sizeof(m.data));
	memcpy(m.data, data + 4, size - 4);
	if (sb_attach_check(&m, data[0] & 1 ? SB_ATTACH_FROM_HOLDER : SB_ATTACH_FROM_CLIENT) < 0)
		return 0;
	must(m.type == SB_ATT_EXEC ? m.n_fds == 4 : m.n_fds == 0);
	must(m.type != SB_IPC_START && m.type != SB_IPC_CHAN_START);
	if (m.type == SB_ATT_CREDIT)
		must(m.len == sizeof(*c) && c->bytes >= 1 && c->bytes <= SB_ATTACH_WINDOW);
	if (m.type == SB_IPC_DONE)
		must(strlen(((const struct sb_ipc_done *)(const void *)m.data)->text) < 500);
	return 0;
}
