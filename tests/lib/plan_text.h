#ifndef SB_TEST_PLAN_TEXT_H
#define SB_TEST_PLAN_TEXT_H
/* Pieces of canonical plans that most tests do not care about, in the order of the keys. */
#define PLAN_ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define PLAN_SHA_OF_1 "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
#define PLAN_ENV_A_1 "\"env\":[{\"name\":\"A\",\"sha256\":\"" PLAN_SHA_OF_1 "\"}]," /* A=1 */
/* between "argv" and "cpus" */
#define PLAN_BUNDLE                                                                                \
	"\"builder\":false,\"bundle\":{\"key\":\"" PLAN_ZEROS "\",\"manifest_sha256\":\"" PLAN_ZEROS "\","           \
	"\"origin\":\"local build\",\"sequence\":1},\"commands\":{\"default\":\"allow\","             \
	"\"log_blocked\":false,\"rules\":[],\"scope\":\"none\"},"                                  \
	"\"config_sha256\":\"" PLAN_ZEROS "\","
/* between "cwd" and "disk" */
#define PLAN_DENY "\"deny_syscalls\":[],"
/* between "expires" and "format" */
#define PLAN_FEATURES "\"features\":[],"
/* between "gid" and "guest_sha256" */
#define PLAN_GUARDS "\"guards\":[],"
/* between "home" and "hostname" */
#define PLAN_HOST_VERSION "\"host_version\":\"0.4\","
/* between "kernel_sha256" and "memory" */
#define PLAN_LOG_BLOCKED "\"layers\":[],\"log_blocked\":false,"
/* between "owner_uid" and "pids_asked" */
#define PLAN_PARTS "\"parts\":[],"
/* between "pids_max" and "provider" */
#define PLAN_PROFILE "\"profile\":\"default\","
/* between "uid" and "user" */
#define PLAN_UPPER "\"upper\":{\"dev\":0,\"ino\":0,\"kind\":\"tmpfs\",\"path\":null},"
/* between "provider_reason" and "separate_stderr" */
#define PLAN_LIMITS                                                                                \
	"\"rejected\":[],\"reviewed_sha256\":\"" PLAN_ZEROS "\",\"rlimits\":{"                     \
	"\"as\":\"18446744073709551615\",\"cpu\":\"18446744073709551615\","                        \
	"\"data\":\"18446744073709551615\",\"fsize\":\"18446744073709551615\","                    \
	"\"memlock\":\"18446744073709551615\",\"stack\":\"18446744073709551615\"},\"secrets\":[],"
/* between "session" and "task" */
#define PLAN_SSH "\"ssh\":{\"hosts\":[],\"keys\":[],\"sign_data\":false},"
/* A whole one: made at 1000, good until 2000, A=1, /bin/echo in a namespace without a network. */
#define PLAN_SESSION "000102030405060708090a0b0c0d0e0f"
#define PLAN_WHOLE \
	"{\"accel\":\"none\",\"argv\":[\"/bin/echo\"]," PLAN_BUNDLE "\"cpus\":2," \
	"\"cpus_asked\":false,\"created\":1000,\"cwd\":\"/w\"," PLAN_DENY \
	"\"disk\":67108864," PLAN_ENV_A_1 "\"expires\":2000," PLAN_FEATURES \
	"\"format\":\"sendbox-plan\",\"gid\":1000," PLAN_GUARDS \
	"\"guest_sha256\":\"" PLAN_ZEROS "\",\"home\":\"/home/user\"," PLAN_HOST_VERSION \
	"\"hostname\":\"sendbox\",\"image\":\"host\",\"image_dev\":0," \
	"\"image_ino\":0,\"image_path\":null,\"initramfs_sha256\":\"" PLAN_ZEROS "\",\"instance\":null," \
	"\"kernel_release\":null,\"kernel_sha256\":\"" PLAN_ZEROS "\"," PLAN_LOG_BLOCKED \
	"\"memory\":0,\"memory_asked\":false,\"mounts\":[]," \
	"\"net\":{\"cname_strict\":false,\"dns_new_names\":0,\"dns_queries\":0,\"dns_types\":[]," \
	"\"ech_outer\":false,\"host_bytes\":0,\"idle_ms\":0,\"max_connections\":0,\"mode\":\"none\"," \
	"\"pins\":[],\"proxy_env\":false,\"resolvers\":[],\"rules\":[],\"session_bytes\":0}," \
	"\"nofile\":1024,\"owner_gid\":1000,\"owner_uid\":1000," PLAN_PARTS \
	"\"pids_asked\":false,\"pids_max\":512," PLAN_PROFILE \
	"\"provider\":\"namespace\",\"provider_asked\":\"namespace\"," \
	"\"provider_reason\":\"asked for\"," PLAN_LIMITS \
	"\"separate_stderr\":false,\"session\":\"" PLAN_SESSION "\"," \
	PLAN_SSH "\"task\":\"command\",\"term\":null,\"test_root\":false,\"timeout_ms\":0," \
	"\"tty\":false,\"uid\":1000," PLAN_UPPER "\"user\":\"user\",\"version\":3}"

#endif
