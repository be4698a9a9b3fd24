#include "bundle_sbom.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define NONE "NOASSERTION"
#define GUEST "sendbox-guest"
#define LICENSE "Apache-2.0" /* of sendbox itself */

struct component {
	const char *file; /* borrowed from the document */
	const char *package;
	const char *version;
	const char *architecture;
	const char *source;
	const char *supplier;
	const char *homepage;
	const char *license;
	const char *sha256;
};

struct parts {
	const struct bundle_sbom_in *in;
	json_t *doc;
	const char *compiler;
	struct component c[BUNDLE_MAX_COMPONENTS];
	size_t n;
	char guest_hex[65];
	char uuid[64];
};

void bundle_sbom_done(struct bundle_sbom *s)
{
	free(s->inventory);
	free(s->spdx);
	free(s->cyclonedx);
	memset(s, 0, sizeof(*s));
}

/* ---- reading ---- */

static int read_component(json_t *o, struct component *c)
{
	uint8_t sha[32];
	int r = json_unpack(o, "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s !}", "file", &c->file,
			    "package", &c->package, "version", &c->version, "architecture",
			    &c->architecture, "source", &c->source, "supplier", &c->supplier,
			    "homepage", &c->homepage, "license", &c->license, "sha256", &c->sha256);

	if (r < 0 || sb_hex_parse(c->sha256, sha, sizeof(sha)) < 0 || !*c->file ||
	    strlen(c->file) > 64 ||
	    c->file[strspn(c->file, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-._+")] != '\0')
		return -EBADMSG;
	return 0;
}

static int read_parts(struct parts *p)
{
	const char *format = "";
	json_t *list = NULL;
	json_error_t je;
	int version = 0;

	p->doc = json_loadb(p->in->components, p->in->components_len, JSON_REJECT_DUPLICATES, &je);
	if (json_unpack(p->doc, "{s:s, s:i, s:s, s:o !}", "format", &format, "version", &version,
			"compiler", &p->compiler, "components", &list) < 0 ||
	    strcmp(format, "sendbox-components") != 0 || version != 1 || !json_is_array(list) ||
	    json_array_size(list) > BUNDLE_MAX_COMPONENTS)
		return -EBADMSG;
	for (; p->n < json_array_size(list); p->n++)
		if (read_component(json_array_get(list, p->n), &p->c[p->n]) < 0)
			return -EBADMSG;
	return 0;
}

/* A UUID (version 8, of our own making) from the digest: unique to what it stands for. */
static void make_uuid(struct parts *p)
{
	uint8_t u[16];
	char hex[33];

	memcpy(u, p->in->guest_sha256, sizeof(u));
	u[6] = (uint8_t)((u[6] & 0x0f) | 0x80);
	u[8] = (uint8_t)((u[8] & 0x3f) | 0x80);
	sb_hex_write(u, sizeof(u), hex);
	(void)snprintf(p->uuid, sizeof(p->uuid), "urn:uuid:%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
		       hex + 12, hex + 16, hex + 20);
}

/* ---- pieces ---- */

static bool known(const char *s)
{
	return *s && strcmp(s, NONE) != 0;
}

/* "Name <address>" to its halves; either may be empty. */
static void split_supplier(const char *s, char name[160], char mail[160])
{
	size_t n = strcspn(s, "<");
	size_t m = s[n] == '<' ? strcspn(s + n + 1, ">") : 0;

	while (n > 0 && s[n - 1] == ' ')
		n--;
	(void)snprintf(name, 160, "%.*s", (int)SB_MIN(n, (size_t)150), s);
	(void)snprintf(mail, 160, "%.*s", (int)SB_MIN(m, (size_t)150), m > 0 ? strchr(s, '<') + 1 : "");
}

/* pkg:deb/debian/NAME@VERSION?arch=ARCH, with what is special in a version percent-encoded. */
static json_t *purl(const struct component *c)
{
	char text[512];
	size_t at;

	if (!known(c->package) || strlen(c->package) > 100 || strlen(c->version) > 100 ||
	    strlen(c->architecture) > 50)
		return NULL;
	at = (size_t)snprintf(text, sizeof(text), "pkg:deb/debian/%s@", c->package);
	for (const char *v = c->version; *v; v++) {
		bool plain = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~", *v) != NULL;

		at += (size_t)snprintf(text + at, sizeof(text) - at, plain ? "%c" : "%%%02X",
				       (unsigned char)*v);
	}
	(void)snprintf(text + at, sizeof(text) - at, "?arch=%s", c->architecture);
	return json_string(text);
}

static json_t *spdx_id(const char *file)
{
	char id[128];
	size_t n = (size_t)snprintf(id, sizeof(id), "SPDXRef-Package-%.80s", file);

	for (size_t i = 0; i < n; i++) /* letters, digits, "." and "-" alone */
		if (id[i] == '_' || id[i] == '+')
			id[i] = '-';
	return json_string(id);
}

static json_t *spdx_package(const char *file, const char *version, const char *license,
			    const char *sha256, const char *purpose)
{
	return json_pack("{s:o, s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:[{s:s, s:s}]}", "SPDXID",
			 spdx_id(file), "name", file, "versionInfo", version, "downloadLocation",
			 NONE, "filesAnalyzed", 0, "licenseConcluded", NONE, "licenseDeclared",
			 license, "copyrightText", NONE, "primaryPackagePurpose", purpose,
			 "checksums", "algorithm", "SHA256", "checksumValue", sha256);
}

/* "Person: NAME (MAIL)" or "Organization: ..."; teams of Debian call themselves so. */
static json_t *spdx_supplier(const struct component *c)
{
	char name[160];
	char mail[160];
	char text[400];
	bool team;

	if (!known(c->supplier))
		return json_string(NONE);
	split_supplier(c->supplier, name, mail);
	team = strstr(name, "Team") || strstr(name, "Maintainers") || strstr(name, "Group");
	(void)snprintf(text, sizeof(text), "%s: %s%s%s%s", team ? "Organization" : "Person", name,
		       *mail ? " (" : "", mail, *mail ? ")" : "");
	return json_string(text);
}

static json_t *spdx_library(const struct component *c)
{
	json_t *p = spdx_package(c->file, c->version, c->license, c->sha256, "LIBRARY");
	json_t *url = purl(c);

	(void)json_object_set_new(p, "supplier", spdx_supplier(c));
	if (known(c->homepage))
		(void)json_object_set_new(p, "homepage", json_string(c->homepage));
	if (known(c->source))
		(void)json_object_set_new(p, "sourceInfo",
					  json_sprintf("built from the source package %s", c->source));
	if (url)
		(void)json_object_set_new(p, "externalRefs",
					  json_pack("[{s:s, s:s, s:o}]", "referenceCategory",
						    "PACKAGE-MANAGER", "referenceType", "purl",
						    "referenceLocator", url));
	return p;
}

static json_t *make_spdx(const struct parts *p)
{
	json_t *packages = json_array();
	json_t *links = json_array();
	json_t *guest = spdx_package(GUEST, p->in->release, LICENSE, p->guest_hex, "APPLICATION");

	(void)json_object_set_new(guest, "supplier", json_string(NONE));
	(void)json_object_set_new(guest, "comment", json_sprintf("compiled by %s", p->compiler));
	(void)json_array_append_new(packages, guest);
	(void)json_array_append_new(links, json_pack("{s:s, s:s, s:o}", "spdxElementId",
						     "SPDXRef-DOCUMENT", "relationshipType",
						     "DESCRIBES", "relatedSpdxElement",
						     spdx_id(GUEST)));
	for (size_t i = 0; i < p->n; i++) {
		(void)json_array_append_new(packages, spdx_library(&p->c[i]));
		(void)json_array_append_new(links,
					    json_pack("{s:o, s:s, s:o}", "spdxElementId",
						      spdx_id(GUEST), "relationshipType",
						      "STATIC_LINK", "relatedSpdxElement",
						      spdx_id(p->c[i].file)));
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:{s:s, s:[o]}, s:o, s:o}", "SPDXID",
			 "SPDXRef-DOCUMENT", "spdxVersion", "SPDX-2.3", "dataLicense", "CC0-1.0",
			 "name", json_sprintf("%s-%s-%s", GUEST, p->in->release, p->in->architecture),
			 "documentNamespace", p->uuid, "creationInfo", "created", p->in->created,
			 "creators", json_sprintf("Tool: sendbox-%s", SB_VERSION), "packages",
			 packages, "relationships", links);
}

static json_t *cdx_component(const char *type, const char *name, const char *version,
			     const char *license, const char *sha256)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:s}]}", "type", type, "bom-ref", name,
			      "name", name, "version", version, "hashes", "alg", "SHA-256", "content",
			      sha256);

	if (known(license))
		(void)json_object_set_new(o, "licenses", json_pack("[{s:s}]", "expression", license));
	return o;
}

static json_t *cdx_library(const struct component *c)
{
	json_t *o = cdx_component("library", c->file, c->version, c->license, c->sha256);
	json_t *url = purl(c);
	char name[160];
	char mail[160];

	if (url)
		(void)json_object_set_new(o, "purl", url);
	if (known(c->supplier)) {
		split_supplier(c->supplier, name, mail);
		(void)json_object_set_new(o, "supplier",
					  *mail ? json_pack("{s:s, s:[{s:s, s:s}]}", "name", name,
							    "contact", "name", name, "email", mail)
						: json_pack("{s:s}", "name", name));
	}
	if (known(c->homepage))
		(void)json_object_set_new(o, "externalReferences",
					  json_pack("[{s:s, s:s}]", "type", "website", "url",
						    c->homepage));
	return o;
}

static json_t *make_cyclonedx(const struct parts *p)
{
	json_t *libraries = json_array();
	json_t *needs = json_array();
	json_t *graph = json_array();

	for (size_t i = 0; i < p->n; i++) {
		(void)json_array_append_new(libraries, cdx_library(&p->c[i]));
		(void)json_array_append_new(needs, json_string(p->c[i].file));
	}
	(void)json_array_append_new(graph, json_pack("{s:s, s:o}", "ref", GUEST, "dependsOn", needs));
	for (size_t i = 0; i < p->n; i++)
		(void)json_array_append_new(graph, json_pack("{s:s}", "ref", p->c[i].file));
	return json_pack("{s:s, s:s, s:s, s:i, s:{s:s, s:{s:[{s:s, s:s, s:s}]}, s:o}, s:o, s:o}",
			 "bomFormat", "CycloneDX", "specVersion", "1.5", "serialNumber", p->uuid,
			 "version", 1, "metadata", "timestamp", p->in->created, "tools",
			 "components", "type", "application", "name", "sendbox", "version",
			 SB_VERSION, "component",
			 cdx_component("application", GUEST, p->in->release, LICENSE, p->guest_hex),
			 "components", libraries, "dependencies", graph);
}

static json_t *make_inventory(const struct parts *p)
{
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:O}", "format", "sendbox-inventory",
			 "version", 1, "release", p->in->release, "architecture",
			 p->in->architecture, "guest_sha256", p->guest_hex, "compiler", p->compiler,
			 "components", json_object_get(p->doc, "components"));
}

/* Takes @o. A NULL anywhere in it has made it NULL. */
static char *text_of(json_t *o)
{
	char *s = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(o);
	return s;
}

int bundle_sbom_make(const struct bundle_sbom_in *in, struct bundle_sbom *ret, struct sb_err *err)
{
	sb_autofree struct parts *p = calloc(1, sizeof(*p));
	autosbom struct bundle_sbom s = { 0 };
	int r;

	if (!p)
		return sb_err_set(err, -ENOMEM, "out of memory");
	p->in = in;
	sb_hex_write(in->guest_sha256, sizeof(in->guest_sha256), p->guest_hex);
	make_uuid(p);
	r = read_parts(p);
	if (r == 0) {
		s.inventory = text_of(make_inventory(p));
		s.spdx = text_of(make_spdx(p));
		s.cyclonedx = text_of(make_cyclonedx(p));
	}
	json_decref(p->doc);
	if (r < 0)
		return sb_err_set(err, r, BUNDLE_COMPONENTS " is malformed: build sendbox again");
	if (!s.inventory || !s.spdx || !s.cyclonedx)
		return sb_err_set(err, -ENOMEM, "out of memory");
	*ret = s;
	memset(&s, 0, sizeof(s));
	return 0;
}
