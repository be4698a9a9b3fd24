/*
 * What each profile's filter lets through, by class; included by gen_seccomp.c alone. A call that
 * is in no list is refused with EPERM; one that is younger than FIRST_UNKNOWN is absent (ENOSYS).
 * Calls whose arguments count (socket, socketpair, ioctl, clone, mknod, personality) have code in
 * gen_seccomp.c besides. Names that a machine has not are left out there.
 *
 * A call belongs into `strict_calls` if a program that reads, computes and writes files can need
 * it; into `default_more` if tools in daily use need it or ask for it and do worse without; into
 * `build_more` if debuggers and sanitizers do. Never listed, for any profile: mounts, namespaces,
 * modules, kexec, keys, bpf, perf, io_uring, userfaultfd, fanotify, file handles, the clock, the
 * machine, swap, quotas, placement of memory, and calls that no kernel has had for years.
 */
static const char *const strict_calls[] = {
	/* reading and writing */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
	"pwritev2", "lseek", "sendfile", "splice", "tee", "copy_file_range", "readahead",
	"fadvise64", "sync_file_range", "fsync", "fdatasync", "sync", "syncfs", "fallocate",
	"truncate", "ftruncate", "flock", "cachestat",
	/* names and what is behind them */
	"open", "openat", "openat2", "creat", "close", "close_range", "stat", "fstat", "lstat",
	"newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat", "faccessat2", "getdents",
	"getdents64", "getcwd", "chdir", "fchdir", "rename", "renameat", "renameat2", "mkdir",
	"mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat", "symlink", "symlinkat",
	"readlink", "readlinkat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown",
	"lchown", "fchownat", "umask", "utime", "utimes", "utimensat", "futimesat", "mknod",
	"mknodat", "setxattr", "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr",
	"listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr",
	"setxattrat", "getxattrat", "listxattrat", "removexattrat", "inotify_init",
	"inotify_init1", "inotify_add_watch", "inotify_rm_watch",
	/* descriptors and waiting */
	"dup", "dup2", "dup3", "fcntl", "ioctl", "pipe", "pipe2", "poll", "ppoll", "select",
	"pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
	"epoll_pwait2", "eventfd", "eventfd2", "signalfd", "signalfd4", "timerfd_create",
	"timerfd_settime", "timerfd_gettime",
	/* memory */
	"mmap", "munmap", "mprotect", "mremap", "msync", "mincore", "madvise", "brk", "mlock",
	"mlock2", "munlock", "mlockall", "munlockall", "remap_file_pages", "get_mempolicy",
	"pkey_mprotect", "pkey_alloc", "pkey_free", "map_shadow_stack", "mseal",
	/* processes and threads; clone without namespaces, clone3 is absent */
	"clone", "fork", "vfork", "execve", "exit", "exit_group", "wait4", "waitid", "kill", "tkill",
	"tgkill", "getpid", "getppid", "gettid", "getpgid", "getpgrp", "setpgid", "getsid", "setsid",
	"set_tid_address", "set_robust_list", "get_robust_list", "rseq", "futex", "futex_waitv",
	"futex_wake", "futex_wait", "futex_requeue", "membarrier", "prctl", "arch_prctl",
	"set_thread_area", "get_thread_area", "pidfd_open", "pidfd_send_signal", "process_mrelease",
	"restart_syscall", "pause",
	/* scheduling and limits */
	"sched_yield", "sched_setparam", "sched_getparam", "sched_setscheduler",
	"sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
	"sched_rr_get_interval", "sched_setaffinity", "sched_getaffinity", "sched_setattr",
	"sched_getattr", "getpriority", "setpriority", "ioprio_get", "ioprio_set", "getrlimit",
	"setrlimit", "prlimit64", "getrusage", "times", "getcpu", "sysinfo", "uname",
	/* signals and time */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend",
	"rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "sigaltstack", "alarm",
	"getitimer", "setitimer", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres",
	"gettimeofday", "time", "timer_create", "timer_settime", "timer_gettime",
	"timer_getoverrun", "timer_delete", "getrandom",
	/* identity: the kernel lets nothing but the own one through */
	"getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "setuid",
	"setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
	"setgroups", "capget", "capset", "personality",
	/* walls of one's own */
	"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
	"lsm_get_self_attr", "lsm_list_modules",
	/* sockets; which ones is decided where they are made */
	"socket", "socketpair", "bind", "listen", "accept", "accept4", "connect", "shutdown",
	"getsockname", "getpeername", "getsockopt", "setsockopt", "sendto", "sendmsg", "sendmmsg",
	"recvfrom", "recvmsg", "recvmmsg",
};

static const char *const default_more[] = {
	/* memory that is a file: JIT compilers, GPU and desktop toolkits, program loaders */
	"memfd_create", "memfd_secret", "execveat",
	/* System V and POSIX queues: databases, fakeroot */
	"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget",
	"msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive",
	"mq_notify", "mq_getsetattr",
	/* the kernel's older asynchronous files: databases */
	"io_setup", "io_destroy", "io_getevents", "io_pgetevents", "io_submit", "io_cancel",
	/* what is mounted */
	"statmount", "listmount",
	"lsm_set_self_attr",
};

static const char *const build_more[] = {
	"ptrace", "process_vm_readv", "process_vm_writev",
};
