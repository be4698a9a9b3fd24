#ifndef SB_CONN_INHERIT_H
#define SB_CONN_INHERIT_H
/*
 * What sendbox-guest finds when the namespace provider starts it: `sendbox-guest namespace own`
 * (it makes its mount trees itself, with the caller's own rights) or `sendbox-guest namespace
 * trees` (the provider was root and hands over id-mapped mount trees that are attached nowhere).
 */
#define SB_INHERIT_CARRIER 3 /* guest's end of the channel */
#define SB_INHERIT_KEY 4     /* memory file: the host's public key, 32 bytes */
#define SB_INHERIT_NET 5     /* front socket of the net gate; /dev/null without a network */
#define SB_INHERIT_SSH 6     /* front socket of the SSH relay; /dev/null without one */
/*
 * With "trees": host image: /usr, /etc; image directory: the directory; then, for a plan with layers,
 * the socket to sendbox-imgfs; then the tree of an upper directory, if the plan has one; then the
 * plan's mounts in order. In the place of a mount that is served (sb_plan_served): the stream socket
 * to its file server. With "own" the sockets alone, in the same order.
 */
#define SB_INHERIT_TREES 7

/* In an upper directory: what the session gets of it. */
#define SB_INHERIT_UPPER "fs"

#define SB_INHERIT_MODE "namespace"
#define SB_INHERIT_OWN "own"
#define SB_INHERIT_TREES_ARG "trees"

#endif
