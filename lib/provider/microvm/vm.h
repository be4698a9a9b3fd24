#ifndef SB_PROVIDER_MICROVM_VM_H
#define SB_PROVIDER_MICROVM_VM_H
/* The command line of QEMU, its jail, and what the start needs to measure. */
#include <sys/stat.h>
#include <sys/types.h>

#include "core/plan.h"
#include "provider/microvm/kernel_image.h"

/* Paths within the jail and descriptors of QEMU; the command line names no other file. */
#define SB_VM_KERNEL "/kernel"
#define SB_VM_INITRD "/initrd"
#define SB_VM_FD_CARRIER 3
#define SB_VM_FD_FS 4 /* and up: the file servers */
#define SB_VM_FS_MAX (SB_PLAN_MAX_MOUNTS + 1)
#define SB_VM_FD_DISK (SB_VM_FD_FS + SB_VM_FS_MAX) /* and up: layers, then the upper one */
#define SB_VM_DISKS_MAX (SB_PLAN_MAX_LAYERS + 1)

struct sb_vm_args {
	enum sb_vm_arch arch;
	enum sb_accel accel;  /* KVM or TCG */
	const char *qemu;     /* absolute path, becomes argv[0]; borrowed */
	unsigned int cpus;
	uint64_t memory_mib;
	uint64_t tsc_khz;     /* x86_64 with TCG; 0 = leave it to the guest */
	size_t n_fs;          /* at most SB_VM_FS_MAX */
	bool no_image;        /* no file server [0] */
	size_t n_layers;      /* read-only disks "layer0".. at SB_VM_FD_DISK and up */
	bool upper;           /* then the writable disk "upper" */
};

#define SB_VM_ARGV_MAX 256
struct sb_vm_argv {
	const char *argv[SB_VM_ARGV_MAX + 1]; /* NULL-terminated; points to literals and text[] */
	size_t n;
	char text[16384];
	size_t used;
};

/*
 * sb_vm_argv_make - the whole command line; pure, and the same for the same arguments
 * Return: 0; -EINVAL: out of range.
 */
SB_MUST_CHECK int sb_vm_argv_make(const struct sb_vm_args *a, struct sb_vm_argv *ret);

/*
 * sb_vm_disks_open - open the plan's layers and upper disk, each once and without following links,
 * and check that each is the file of the plan; QEMU gets these descriptors and no path
 * @ret: -1 where there is none; owned by the caller. Return: 0; -ESTALE: another or changed file;
 * -errno.
 */
SB_MUST_CHECK int sb_vm_disks_open(const struct sb_plan *p, int ret[SB_VM_DISKS_MAX],
				   struct stat *ret_upper, struct sb_err *err);

/*
 * Time stamp counter of the host, in kHz, for the guest under TCG, which reads the same counter
 * and cannot measure it when the host is busy. Two readings; the wait between them may be used
 * for other work. sb_tsc_khz sleeps until they are at least 5 ms apart.
 * Return: kHz; 0 on machines without such a counter.
 */
struct sb_tsc {
	uint64_t count;
	uint64_t ns;
};
void sb_tsc_begin(struct sb_tsc *t);
uint64_t sb_tsc_khz(const struct sb_tsc *begin);

/* What goes wrong in the jail, told by the child through shared memory. */
struct sb_vm_jail_report {
	int code;
	char text[320];
};

struct sb_vm_jail {
	bool as_root;            /* else by a user namespace */
	uint32_t id;             /* as root: uid and gid of QEMU */
	const char *root;        /* existing directory that gets the private root, absolute */
	const char *qemu;        /* program, absolute */
	struct stat qemu_stat;   /* its state when its digest was checked; st_ino 0 = not asked */
	const char *kernel;      /* absolute path of the file that becomes /kernel */
	struct stat kernel_stat; /* its state when its digest was checked */
	const void *initrd;      /* becomes /initrd; borrowed */
	size_t initrd_len;
	bool kvm;
	uint64_t file_bytes;     /* no file may grow past this; 0 = the console's limit */
	struct sb_vm_jail_report *report; /* shared with the parent */
};

/*
 * sb_vm_jail_enter - pre_exec of QEMU (see the theory of operation in jail.c)
 * @arg: struct sb_vm_jail
 * Return: 0; -errno with the reason in the report. Runs in a fork; never to be undone.
 */
SB_MUST_CHECK int sb_vm_jail_enter(void *arg);

/*
 * sb_vm_jail_try - do the same in a child that then exits, without kernel and program
 * @why: set on failure. Return: 0: works here; -errno.
 */
SB_MUST_CHECK int sb_vm_jail_try(const char *root, const char *qemu, struct sb_err *why);

#define SB_VM_JAIL_REMEDY_USER                                                                     \
	"allow user namespaces as root: sysctl -w user.max_user_namespaces=10000 "                 \
	"(Debian before 11: kernel.unprivileged_userns_clone=1; "                                  \
	"Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0)"
#define SB_VM_JAIL_REMEDY_ROOT "run with CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID (not in a container)"

#endif
