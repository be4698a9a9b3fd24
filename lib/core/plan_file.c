#include "core/plan_file.h"

#include <errno.h>
#include <string.h>

#include "core/json_i.h"
#include "core/plan.h"

#define FORMAT "sendbox-signed-plan"
#define VERSION 1

static const struct sb_json_field fields[] = {
	SB_JSON_HEX(struct sb_plan_file, "key", key),
	SB_JSON_HEX(struct sb_plan_file, "signature", signature),
};

void sb_plan_file_done(struct sb_plan_file *f)
{
	free(f->plan);
	*f = (struct sb_plan_file){ 0 };
}

int sb_plan_file_write(const struct sb_plan_file *f, char **ret, size_t *ret_len)
{
	sb_autofree char *text = NULL;
	json_t *plan;
	json_t *o;
	size_t len;
	char *out;

	if (f->plan_len == 0 || f->plan_len > SB_PLAN_MAX_BYTES)
		return -EINVAL;
	plan = json_stringn(f->plan, f->plan_len);
	if (!plan)
		return -EINVAL;
	o = json_object();
	if (json_object_set_new(o, "plan", plan) == 0 &&
	    json_object_set_new(o, "format", json_string(FORMAT)) == 0 &&
	    json_object_set_new(o, "version", json_integer(VERSION)) == 0 &&
	    sb_json_add(o, fields, SB_ARRAY_LEN(fields), f) == 0)
		text = sb_json_text(sb_take(&o));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	if (len + 1 > SB_PLAN_FILE_MAX)
		return -EINVAL;
	out = realloc(text, len + 2);
	if (!out)
		return -ENOMEM;
	text = NULL;
	out[len] = '\n';
	out[len + 1] = '\0';
	*ret = out;
	*ret_len = len + 1;
	return 0;
}

static int parse_object(const json_t *o, struct sb_plan_file *f, struct sb_err *err)
{
	const json_t *format = json_object_get(o, "format");
	const json_t *plan = json_object_get(o, "plan");
	int r;

	if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
		return sb_json_bad(err, "format", "is not " FORMAT);
	if (json_integer_value(json_object_get(o, "version")) != VERSION)
		return sb_json_bad(err, "version", "is not one that this program knows");
	r = sb_json_get(o, fields, SB_ARRAY_LEN(fields), f, err);
	if (r < 0)
		return r;
	if (!json_is_string(plan))
		return sb_json_bad(err, "plan", "is missing or no string");
	f->plan_len = json_string_length(plan);
	f->plan = malloc(f->plan_len + 1);
	if (!f->plan)
		return -ENOMEM;
	memcpy(f->plan, json_string_value(plan), f->plan_len + 1);
	return 0;
}

int sb_plan_file_parse(const char *bytes, size_t len, struct sb_plan_file *ret, struct sb_err *err)
{
	sb_autoplanfile struct sb_plan_file f = { 0 };
	sb_autofree char *again = NULL;
	size_t again_len = 0;
	json_t *o;
	int r;

	r = sb_json_load("plan file", bytes, len, SB_PLAN_FILE_MAX, JSON_ALLOW_NUL, &o, err);
	if (r < 0)
		return r;
	r = parse_object(o, &f, err);
	json_decref(o);
	if (r == 0)
		r = sb_plan_file_write(&f, &again, &again_len);
	if (r == -EINVAL)
		r = -EBADMSG;
	if (r < 0)
		return sb_err_set(err, r, "plan file: cannot be read");
	r = sb_json_same("plan file", bytes, len, again, again_len, err);
	if (r < 0)
		return r;
	*ret = f;
	f = (struct sb_plan_file){ 0 };
	return 0;
}
