/* Records of a minute: of each class its share, the first refusal of each rule, nothing else. */
#include "core/audit_budget.h"
#include "t.h"

#define S 1000000000ULL

static uint64_t mark(const char *rule)
{
	const char *const texts[] = { "network", "connect", rule };

	return sb_audit_budget_mark(texts, 3);
}

static unsigned int flood(struct sb_audit_budget *b, enum sb_audit_class c, size_t bytes, uint64_t m,
			  uint64_t now)
{
	unsigned int n = 0;

	for (int i = 0; i < 10000; i++)
		n += sb_audit_budget_take(b, c, bytes, m, now);
	return n;
}

TEST(a_minute)
{
	static struct sb_audit_budget b;

	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 100, 0, 5), 600);
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 100, 0, 5 + 59 * S), 0);
	/* the others have their own */
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_RESOLVE, 100, 0, 5 + 59 * S), 600);
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_COMMAND, 100, 0, 5 + 59 * S), 2000);
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_FREE, 100, 0, 5 + 59 * S), 10000);
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 100, 0, 5 + 60 * S), 600);
}

TEST(bytes)
{
	static struct sb_audit_budget b;

	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 4000, 0, 1), (128 << 10) / 4000);
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_COMMAND, 4000, 0, 1), (512 << 10) / 4000);
	CHECK(!sb_audit_budget_take(&b, SB_AUDIT_CLASS_SSH, (128 << 10) + 1, 0, 1));
}

TEST(first_of_a_rule)
{
	static struct sb_audit_budget b;
	char rule[16];
	unsigned int n = 0;

	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 100, mark("a"), 1), 600);
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 100, mark("b"), 1), 1); /* drowned, but for the first */
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 100, mark("b"), 2), 0);
	CHECK_EQ(flood(&b, SB_AUDIT_CLASS_NETWORK, 1U << 20, mark("c"), 2), 1);
	CHECK(mark("a") != mark("b") && mark("") == mark(NULL));
	/* however many rules there are */
	for (int i = 0; i < 2 * SB_AUDIT_RULES; i++) {
		(void)snprintf(rule, sizeof(rule), "r%d", i);
		n += sb_audit_budget_take(&b, SB_AUDIT_CLASS_NETWORK, 100, mark(rule), 3);
	}
	CHECK_EQ(n, SB_AUDIT_RULES - 1 - 3);
}
