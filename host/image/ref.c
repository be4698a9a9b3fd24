#include "image/ref.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static int bad(struct sb_err *err, const char *text, const char *why)
{
	return sb_err_set(err, -EINVAL,
			  "image \"%.200s\": %s; a reference is NAME[:TAG][@sha256:...], oci:DIR[:TAG], "
			  "oci-archive:FILE[:TAG], docker-archive:FILE[:TAG], dir:DIR or host",
			  text, why);
}

static bool tag_ok(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > 128 || s[0] == '.' || s[0] == '-')
		return false;
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
		      (*s >= '0' && *s <= '9') || *s == '.' || *s == '_' || *s == '-'))
			return false;
	return true;
}

/* Host, port and path of a registry: nothing that a command line or a URL reads otherwise. */
static bool name_ok(const char *s)
{
	if (s[0] == '\0' || s[0] == '-' || s[0] == '/' || strlen(s) > 255 || strstr(s, "//") ||
	    strstr(s, "..") || s[strlen(s) - 1] == '/')
		return false;
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
		      (*s >= '0' && *s <= '9') || strchr("._-/:[]", *s)))
			return false;
	return true;
}

static bool is_loopback(const char *name)
{
	static const char *const hosts[] = { "127.0.0.1", "localhost", "[::1]" };

	for (size_t i = 0; i < SB_ARRAY_LEN(hosts); i++) {
		size_t n = strlen(hosts[i]);

		if (strncmp(name, hosts[i], n) == 0 && (name[n] == '/' || name[n] == ':') &&
		    strchr(name, '/'))
			return true;
	}
	return false;
}

static int registry(const char *text, struct image_ref *ret, struct sb_err *err)
{
	uint8_t bin[32];
	char *at;
	char *colon;

	if (text[0] == '.')
		return sb_err_set(err, -EINVAL, "image \"%.100s\": a registry's name begins with no dot; for a "
				  "folder with a root file system write dir:%.100s", text, text);
	if (snprintf(ret->name, sizeof(ret->name), "%s", text) >= (int)sizeof(ret->name))
		return bad(err, text, "too long");
	ret->source = IMAGE_SOURCE_REGISTRY;
	at = strchr(ret->name, '@');
	if (at) {
		*at++ = '\0';
		if (strncmp(at, "sha256:", 7) != 0 || strlen(at) != 71 ||
		    sb_hex_parse(at + 7, bin, sizeof(bin)) < 0)
			return bad(err, text, "the digest must be sha256: and 64 lower-case digits");
		memcpy(ret->digest, at, 72);
	}
	colon = strrchr(ret->name, ':');
	if (colon && !strchr(colon, '/')) {
		*colon++ = '\0';
		if (!tag_ok(colon))
			return bad(err, text, "the tag is malformed");
		memcpy(ret->tag, colon, strlen(colon) + 1);
	}
	if (!name_ok(ret->name))
		return bad(err, text, "the name is malformed");
	ret->loopback = is_loopback(ret->name);
	return 0;
}

static int local(const char *text, const char *rest, bool tagged, struct image_ref *ret,
		 struct sb_err *err)
{
	char *colon;

	if (*rest == '\0' || strlen(rest) >= sizeof(ret->name))
		return bad(err, text, "there must be a path");
	memcpy(ret->name, rest, strlen(rest) + 1);
	colon = tagged ? strrchr(ret->name, ':') : NULL;
	if (!colon || strchr(colon, '/'))
		return 0;
	*colon++ = '\0';
	/* other tools take whole references here; only the tag counts */
	if (!tag_ok(colon) || ret->name[0] == '\0')
		return bad(err, text, "the tag is malformed");
	memcpy(ret->tag, colon, strlen(colon) + 1);
	return 0;
}

int image_ref_parse(const char *text, struct image_ref *ret, struct sb_err *err)
{
	static const struct {
		const char *prefix;
		enum image_source source;
		bool tagged;
	} forms[] = {
		{ "dir:", IMAGE_SOURCE_DIR, false },
		{ "oci:", IMAGE_SOURCE_OCI, true },
		{ "oci-archive:", IMAGE_SOURCE_OCI_ARCHIVE, true },
		{ "docker-archive:", IMAGE_SOURCE_DOCKER_ARCHIVE, true },
	};

	*ret = (struct image_ref){ 0 };
	for (const char *s = text; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return bad(err, "?", "control characters");
	if (strcmp(text, "host") == 0) {
		ret->source = IMAGE_SOURCE_HOST;
		return 0;
	}
	if (text[0] == '/') {
		ret->source = IMAGE_SOURCE_DIR;
		return local(text, text, false, ret, err);
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(forms); i++) {
		size_t n = strlen(forms[i].prefix);

		if (strncmp(text, forms[i].prefix, n) != 0)
			continue;
		ret->source = forms[i].source;
		return local(text, text + n, forms[i].tagged, ret, err);
	}
	return registry(text, ret, err);
}
