#ifndef SB_PROVIDER_NAMESPACE_NAMESPACE_H
#define SB_PROVIDER_NAMESPACE_NAMESPACE_H
/* Parts of the namespace provider: see provider.h for the whole. */
#include "provider/provider.h"

/* Host ids that stand for guest ids 0..SB_NS_IDS - 1 when the caller is root. */
#define SB_NS_IDS 65536U

/* Host ids that the files of upper directories belong to when the caller is root: of no account, and
 * not those of any session, so that a set-id file there is nobody's. */
#define SB_NS_STORED 0x6fff0000U

/* One line of an id map. */
struct sb_ns_map {
	uint32_t inside;
	uint32_t outside;
	uint32_t count;
};

/* sb_ns_map_write - write the id maps of process @pid
 * @deny_setgroups: needed when the writer has no privilege
 * Return: 0; -errno. */
SB_MUST_CHECK int sb_ns_map_write(pid_t pid, struct sb_ns_map uid, struct sb_ns_map gid,
				  bool deny_setgroups);

/* sb_ns_userns - a user namespace of its own with these maps, without any process in it
 * @ret: descriptor, close-on-exec. Return: 0; -errno. */
SB_MUST_CHECK int sb_ns_userns(struct sb_ns_map uid, struct sb_ns_map gid, int *ret);

/* Name of the record of control groups in a session directory. */
#define SB_NS_GROUPS "cgroups"

#define SB_NS_MAX_TREES (SB_PLAN_MAX_MOUNTS + 4)
/*
 * sb_ns_trees - the mount trees for sendbox-guest when the caller is root
 * @socks: [0] is the socket to the server of layers, [i + 1] the file server's that stands in the
 * place of mounts[i]; -1 = none
 * @session_ns: the session's user namespace
 * @base: first host id of the session
 * @fds: SB_NS_MAX_TREES slots; owned by the caller
 * Return: number of trees; -errno with the text in @err.
 */
SB_MUST_CHECK int sb_ns_trees(const struct sb_plan *p, const int *socks, int session_ns,
			      uint32_t base, int *fds, struct sb_err *err);
/* sb_ns_socks - the same for a caller who is not root: the sockets alone, in order */
SB_MUST_CHECK int sb_ns_socks(const struct sb_plan *p, const int *socks, int *fds,
			      struct sb_err *err);

/* Why namespaces cannot be made for this caller, as a remedy; "" when nothing is known. */
void sb_ns_userns_remedy(char *ret, size_t cap);

void sb_ns_probe(struct sb_probe *ret);
void sb_ns_probe_net(struct sb_probe *ret);
SB_MUST_CHECK int sb_ns_start(const struct sb_start *in, struct sb_guest *ret, struct sb_err *err);

#endif
