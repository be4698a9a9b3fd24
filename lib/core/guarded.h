#ifndef SB_CORE_GUARDED_H
#define SB_CORE_GUARDED_H
/*
 * Files that programs outside run or believe: what a session made or changed among them is shown
 * first. Pure.
 */
#include "base/mem.h"

enum sb_guarded { /* up to SHELL: what runs without a command of its own being given; shown first */
	SB_GUARDED_NO = 0,
	SB_GUARDED_GIT,     /* hooks, and settings that name programs */
	SB_GUARDED_EDITOR,
	SB_GUARDED_AGENT,
	SB_GUARDED_SHELL,   /* what shells and tool managers read in the current folder */
	SB_GUARDED_CI,
	SB_GUARDED_PACKAGE, /* scripts that a package manager runs */
	SB_GUARDED_BUILD,   /* what a build runs */
	SB_GUARDED_BLIND,   /* a folder that cannot be looked into, and may hold any of them */
};

/* @path: relative to the shared folder, normal; at any depth, in any case of letters. */
enum sb_guarded sb_guarded(const char *path);
/* A folder that guarded names are reached through (.git, .git/info, .github): what it is when it is, or becomes,
 * anything but a folder. NO for others. */
enum sb_guarded sb_guarded_above(const char *path);
/* The same of a link of that name: guarded ones, those above, and all in .git, where git makes none. */
enum sb_guarded sb_guarded_link(const char *path);
/* Names that git reads in a repository without a work tree, which is known by what is beside them. Folders of
 * git's among them count when they are, or become, anything else. */
bool sb_guarded_bare(const char *name);
/* For people: "git hook or setting". */
const char *sb_guarded_text(enum sb_guarded g);

#endif
