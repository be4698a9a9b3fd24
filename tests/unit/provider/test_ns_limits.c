/* Where a control group can be made, from the text of /proc/self/{mountinfo,cgroup}. */
#include "provider/namespace/limits.h"
#include "t.h"

static const char hybrid_mounts[] =
	"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
	"30 22 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	"31 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	"32 22 0:28 / /nowhere/unified rw - cgroup2 cgroup2 rw\n";
static const char hybrid_self[] =
	"5:cpu,cpuacct:/\n4:memory:/jobs/a:b\n1:name=systemd:/x\n0::/\n";

TEST(version_1_below_the_own_group)
{
	char dir[200];
	bool v2 = true;

	CHECK_EQ(sb_ns_cgroup_find(hybrid_mounts, hybrid_self, "memory", true, dir, sizeof(dir),
				   &v2), 0);
	CHECK_STR(dir, "/sys/fs/cgroup/memory/jobs/a:b");
	CHECK(!v2);
	CHECK_EQ(sb_ns_cgroup_find(hybrid_mounts, hybrid_self, "cpu", false, dir, sizeof(dir),
				   &v2), 0);
	CHECK_STR(dir, "/sys/fs/cgroup/cpu,cpuacct");
}

TEST(a_missing_controller_is_told)
{
	char dir[200] = "untouched";
	bool v2;

	CHECK_EQ(sb_ns_cgroup_find(hybrid_mounts, hybrid_self, "pids", true, dir, sizeof(dir),
				   &v2), -ENOENT);
	CHECK_EQ(sb_ns_cgroup_find(hybrid_mounts, hybrid_self, "mem", true, dir, sizeof(dir), &v2),
		 -ENOENT);
	CHECK_EQ(sb_ns_cgroup_find("", "", "pids", true, dir, sizeof(dir), &v2), -ENOENT);
	CHECK_EQ(sb_ns_cgroup_find("broken\n\n - \n", ":\n::\n", "pids", true, dir, sizeof(dir),
				   &v2), -ENOENT);
	CHECK_STR(dir, "untouched");
}

TEST(a_path_that_does_not_fit_is_refused)
{
	char dir[8];
	bool v2;

	CHECK_EQ(sb_ns_cgroup_find(hybrid_mounts, hybrid_self, "memory", true, dir, sizeof(dir),
				   &v2), -ENAMETOOLONG);
}

TEST(nothing_asked_makes_nothing)
{
	struct sb_ns_limits none = { 0 };
	struct sb_ns_groups g = { .n = 9 };

	CHECK_EQ(sb_ns_limits_set(&none, -1, "sendbox-x", 1, &g, NULL), 0);
	CHECK_EQ(g.n, 0);
	CHECK_EQ(sb_ns_groups_remove(&g, NULL), 0);
}
