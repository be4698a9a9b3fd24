/* Lines of OpenSSH's files; keys and digests by ssh-keygen. */
#include "crypto/crypto.h"
#include "ssh_key_line.h"
#include "t.h"

#define KEY "AAAAC3NzaC1lZDI1NTE5AAAAIOtlcjK4192lIwPeJLxYk6UnMtyf/SxPyWBo/2vcZwPJ"
#define ED "ssh-ed25519 " KEY
#define EC "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBIXZGBgVtxGeZ27kfscZf2EV"   \
	   "osKIqijq2AGrCg5nzeeOcNICE23zzIpPnoahq55LAdwU1o8XJfeg5ErE4QaI9Uo="

static const uint8_t ed_sha[32] = { 0x7a, 0x0f, 0x42, 0x92, 0xd1, 0x15, 0x7e, 0xb3, 0xa7, 0xb9, 0x3c,
				    0x3a, 0xd5, 0x81, 0x4f, 0x02, 0xee, 0x09, 0x80, 0x1f, 0xbd, 0x5d,
				    0xf8, 0xa4, 0xb3, 0xaa, 0xb9, 0x4b, 0x8f, 0x8b, 0x96, 0x3a };
static const uint8_t ec_sha[32] = { 0x79, 0x3e, 0xf8, 0x36, 0xd4, 0x50, 0x1e, 0xc7, 0x9c, 0xca, 0xf6,
				    0x38, 0xfa, 0xec, 0x03, 0xbe, 0x34, 0x24, 0x23, 0xcd, 0x83, 0x24,
				    0xad, 0xf7, 0xe8, 0x37, 0x7c, 0x86, 0xe6, 0x79, 0x81, 0xb7 };

static int line(const char *s, size_t words, const uint8_t want[32])
{
	uint8_t sha[32] = { 0 };
	int r = ssh_key_line(s, strlen(s), words, sha);

	if (r == 0)
		CHECK_MEM(sha, want, 32);
	return r;
}

TEST(keys)
{
	CHECK_EQ(sb_crypto_init(), 0);
	CHECK_EQ(line(ED, 0, ed_sha), 0);
	CHECK_EQ(line(ED " a comment\n", 0, ed_sha), 0);
	CHECK_EQ(line("  \t" ED "\r\n", 0, ed_sha), 0);
	CHECK_EQ(line(EC, 0, ec_sha), 0);
	CHECK_EQ(line("host,192.0.2.1 " EC " x", 1, ec_sha), 0);
	CHECK_EQ(line("@revoked host " ED, 2, ed_sha), 0);
}

TEST(no_keys)
{
	char longest[SSH_KEY_LINE_MAX + 200];

	CHECK_EQ(line("", 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-ed25519", 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-ed25519 ", 0, ed_sha), -EINVAL);
	CHECK_EQ(line(ED, 1, ed_sha), -EINVAL);
	CHECK_EQ(line("host " ED, 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-rsa " KEY, 0, ed_sha), -EINVAL); /* another type than the blob's own */
	CHECK_EQ(line("ssh-ed25519x " KEY, 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-ed2551 " KEY, 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-ed25519 " KEY "AAAA", 0, ed_sha), -EINVAL); /* bytes behind the key */
	CHECK_EQ(line("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-ed25519 A", 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-ed25519 ====", 0, ed_sha), -EINVAL);
	CHECK_EQ(line("ssh-ed25519 /////w==", 0, ed_sha), -EINVAL);
	/* what lies beyond the longest line is not looked at */
	memset(longest, ' ', sizeof(longest));
	memcpy(longest + SSH_KEY_LINE_MAX - 20, ED, sizeof(ED));
	CHECK_EQ(line(longest, 0, ed_sha), -EINVAL);
}

static enum ssh_known known(const char *s, const uint8_t want[32])
{
	uint8_t sha[32] = { 0 };
	enum ssh_known k = ssh_known_line(s, strlen(s), sha);

	if (k == SSH_KNOWN_KEY || k == SSH_KNOWN_REVOKED)
		CHECK_MEM(sha, want, 32);
	return k;
}

TEST(known_hosts)
{
	CHECK_EQ(known("example.com " ED, ed_sha), SSH_KNOWN_KEY);
	CHECK_EQ(known("|1|c2FsdA==|aGFzaA== " EC "\n", ec_sha), SSH_KNOWN_KEY);
	CHECK_EQ(known("@revoked example.com " ED, ed_sha), SSH_KNOWN_REVOKED);
	CHECK_EQ(known("@cert-authority *.example.com " ED, ed_sha), SSH_KNOWN_AUTHORITY);
	CHECK_EQ(known("", ed_sha), SSH_KNOWN_NONE);
	CHECK_EQ(known("\n", ed_sha), SSH_KNOWN_NONE);
	CHECK_EQ(known("# Host example.com found: line 1", ed_sha), SSH_KNOWN_NONE);
	CHECK_EQ(known("#example.com " ED, ed_sha), SSH_KNOWN_NONE);
	CHECK_EQ(known("@other example.com " ED, ed_sha), SSH_KNOWN_NONE);
	CHECK_EQ(known("@revokedx example.com " ED, ed_sha), SSH_KNOWN_NONE);
	CHECK_EQ(known("@revoked " ED, ed_sha), SSH_KNOWN_NONE);
	CHECK_EQ(known("example.com ssh-rsa " KEY, ed_sha), SSH_KNOWN_NONE);
}
