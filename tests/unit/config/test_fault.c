/* Every allocation fails once: -ENOMEM or told as dropped, nothing lost, nothing half made. */
#include <stdlib.h>

#include "cfgt.h"
#include "config/doc_i.h"

static const char outer[] = "locked: true\npolicy:\n  network: {allowed_domains: [a.com, b.com],\n"
			    "    blocked_domains: [c.com]}\nenv: {A: x}\n";
static const char inner[] = "policy:\n  network: {allowed_domains: [a.com], blocked_domains: [d.com]}\n"
			    "  commands: {allowlist: [git **, {run: make, any_order: true}]}\n"
			    "mounts: [a:/b:rw]\nenv: {B: null}\n";

static int compile(const char *second, struct cfg **ret, struct problems *p)
{
	const struct cfg_source s[] = {
		{ CFG_USER, "/u/config.yaml", outer, sizeof(outer) - 1 },
		{ CFG_PROJECT, "/p/.sendbox.yaml", second, strlen(second) },
	};

	return cfg_compile(s, 2, ret, p);
}

TEST(a_good_file)
{
	unsigned int failed = 0;

	doc_yaml_inside = true; /* for all of them */

	T_EVERY_FAULT(n)
	{
		struct problems p = { 0 };
		struct cfg *c = NULL;
		char *text = NULL;
		int r;

		t_fault_arm(n);
		r = compile(inner, &c, &p);
		if (r == 0 && cfg_value_json(cfg_get(c, "mounts"), &text) < 0)
			r = -ENOMEM;
		if (!t_fault_fired()) {
			CHECK_EQ(r, 0);
			CHECK_STR(text, "[{\"guest\":\"/b\",\"host\":\"/p/a\",\"mode\":\"rw\"}]");
			c = cfg_free(c);
			free(text);
			problems_done(&p);
			break;
		}
		failed++;
		CHECK(r == -ENOMEM);
		CHECK_EQ(p.n, 0);
		c = cfg_free(c);
		free(text);
		problems_done(&p);
	}
	CHECK(failed > 30);
}

/* A file with problems is never accepted because there was no memory to tell them. */
TEST(a_bad_file)
{
	T_EVERY_FAULT(n)
	{
		struct problems p = { 0 };
		struct cfg *c = NULL;
		int r;

		t_fault_arm(n);
		r = compile("nmae: x\na: 1\na: 2\ntimeout: y\npolicy: {network: {allowed_domains: [z]}}\n", &c,
			    &p);
		CHECK(r == -ENOMEM || r == -EBADMSG);
		CHECK(c == NULL);
		if (r == -EBADMSG)
			CHECK(p.n + p.dropped > 0);
		problems_done(&p);
		if (!t_fault_fired()) {
			CHECK_EQ(r, -EBADMSG);
			break;
		}
	}
}

TEST(json_and_migrate)
{
	static const char text[] = "{\"secrets\": [\"A\"], \"name\": \"x\"}";
	static const char old[] = "secrets: [A]\nname: x\ngithub:\n  forward_auth: true\n";

	T_EVERY_FAULT(n)
	{
		struct problems p = { 0 };
		struct doc *d = NULL;
		char *out = NULL;
		size_t len = 0;
		size_t changes = 0;
		int r;
		int m;

		t_fault_arm(n);
		r = load_text(text, DOC_JSON, &d, &p);
		m = cfg_migrate(old, sizeof(old) - 1, "f", &out, &len, &changes, &p);
		CHECK((r == 0) == (d != NULL) && (r == 0 || r == -ENOMEM));
		CHECK((m == 0) == (out != NULL));
		d = doc_free(d);
		free(out);
		problems_done(&p);
		if (!t_fault_fired()) {
			CHECK_EQ(r, 0);
			CHECK_EQ(m, 0);
			break;
		}
	}
}
