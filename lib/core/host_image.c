#include "core/host_image.h"

const char *const sb_host_etc[] = {
	"alternatives", "ca-certificates", "ca-certificates.conf", "ssl/certs", "ssl/openssl.cnf",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "terminfo",
	"inputrc", "profile", "profile.d", "bash.bashrc", "skel", "vim", "mime.types",
	"protocols", "services", "rpc", "magic", "fonts", "debian_version", "lsb-release",
	"python3", "python3.9", "python3.11", "python3.12", "python3.13", "perl", "java-17-openjdk",
	"java-21-openjdk", "java", "nodejs", "gitattributes", "locale.alias", "default/locale",
	"wgetrc", "emacs", "nanorc", "lynx", "ghostscript", "ImageMagick-6", "ODBCDataSources",
	NULL,
};
