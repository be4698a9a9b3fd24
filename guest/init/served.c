#include "init/served.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "init/port.h"
#include "relay/fuse_pump.h"

#define PORT_TIMEOUT_MS 10000
#define IMAGE_AT "/sendbox/image"
#define READ_AHEAD_KIB 1024U

/* One mount by its port or socket, its pump running. */
static int start(const char *name, int *port, uint32_t flags, struct sb_served *s, int *ret,
		 struct sb_err *err)
{
	sb_autofd int fuse = -1;
	sb_autofd int tree = -1;
	int e = sb_fuse_tree(flags, &fuse, &tree, err);

	if (e < 0)
		return e;
	e = sb_fuse_pump_start(&fuse, port, &s->pumps[s->n_pumps]);
	if (e < 0)
		return sb_err_set(err, e, "cannot start the pump of %s: %s", name, strerror(-e));
	s->n_pumps++;
	*ret = sb_fd_take(&tree);
	return 0;
}

static int serve_one(size_t number, uint32_t flags, struct sb_served *s, int *ret,
		     struct sb_err *err)
{
	sb_autofd int port = -1;
	char name[32];
	int e;

	(void)snprintf(name, sizeof(name), "sb.fs%zu", number);
	e = sb_port_open(name, PORT_TIMEOUT_MS, &port, err);
	return e < 0 ? e : start(name, &port, flags, s, ret, err);
}

static uint32_t flags_of(const struct sb_plan_mount *m)
{
	return (m->mode == SB_MOUNT_RW ? 0 : SB_FUSE_RO) | (m->file ? SB_FUSE_FILE : 0);
}

int sb_served_take(const struct sb_plan_mount *m, int *sock, struct sb_served *ret, int *ret_tree,
		   struct sb_err *err)
{
	return start(m->guest, sock, flags_of(m), ret, ret_tree, err);
}

/* ---- layers of a namespace ---- */

#define LAYERS_AT "/tmp" /* for a moment, and in this mount namespace alone */

static int send_fuse(int sock, int fuse)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	char byte = 'f';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			    .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fuse, sizeof(fuse));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

int sb_served_layers(int *sock, size_t n, int *trees, struct sb_err *err)
{
	sb_autofd int conn = sb_fd_take(sock);
	sb_autofd int fuse = -1;
	sb_autofd int tree = -1;
	int e = sb_fuse_tree(SB_FUSE_RO, &fuse, &tree, err);

	if (e < 0)
		return e;
	e = send_fuse(conn, fuse);
	sb_fd_close(&fuse); /* the server's is the only one now: when it ends, so does the mount */
	if (e == 0)
		e = sb_mnt_attach_path(tree, AT_FDCWD, LAYERS_AT);
	if (e < 0)
		return sb_err_set(err, e, "cannot reach the server of layers: %s", strerror(-e));
	for (size_t i = 0; e == 0 && i < n; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), LAYERS_AT "/%zu", i);
		e = sb_mnt_clone(AT_FDCWD, path, SB_MNT_SAFE | MOUNT_ATTR_RDONLY, &trees[i]);
	}
	if (umount2(LAYERS_AT, MNT_DETACH) < 0 && e == 0)
		e = -errno;
	return e < 0 ? sb_err_set(err, e, "cannot use the layers: %s", strerror(-e)) : 0;
}

/* ---- image and mounts of a micro-VM ---- */

/* The served image has `usr` and `etc`. */
static int take_host_image(int tree, struct sb_rootfs *r, struct sb_err *err)
{
	int e = mkdir(IMAGE_AT, 0700) < 0 && errno != EEXIST ? -errno : 0;

	if (e == 0)
		e = sb_mnt_attach_path(tree, AT_FDCWD, IMAGE_AT);
	if (e == 0)
		e = sb_mnt_clone(AT_FDCWD, IMAGE_AT "/usr", SB_MNT_SAFE | MOUNT_ATTR_RDONLY,
				 &r->image);
	if (e < 0)
		return sb_err_set(err, e, "cannot use the served /usr: %s", strerror(-e));
	r->etc = open(IMAGE_AT "/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (r->etc < 0 && errno != ENOENT)
		return sb_err_set(err, -errno, "cannot use the served /etc: %s", strerror(errno));
	if (sb_fuse_readahead("/sys", IMAGE_AT, READ_AHEAD_KIB) < 0)
		sb_debug("the image keeps its small reads");
	return 0;
}

int sb_served_mount(const struct sb_plan *p, struct sb_served *ret, struct sb_rootfs *r,
		    struct sb_err *err)
{
	sb_autofd int image = -1;
	int e = p->image == SB_IMAGE_LAYERS ? 0 : serve_one(0, SB_FUSE_RO, ret, &image, err);

	for (size_t i = 0; e == 0 && i < p->n_mounts; i++) {
		e = serve_one(i + 1, flags_of(&p->mounts[i]), ret, &r->mounts[i], err);
	}
	if (e < 0)
		return e;
	if (p->image == SB_IMAGE_HOST)
		return take_host_image(image, r, err);
	r->image = sb_fd_take(&image);
	return 0;
}

void sb_served_tune(const struct sb_plan *p, const char *root)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		char path[SB_PLAN_MAX_PATH + 64];

		if (p->mounts[i].file)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", root, p->mounts[i].guest);
		if (sb_fuse_readahead("/sys", path, READ_AHEAD_KIB) < 0)
			sb_debug("%s keeps its small reads", path);
	}
}
