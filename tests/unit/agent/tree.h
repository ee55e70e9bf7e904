// SPDX-License-Identifier: Apache-2.0
// Made-up /sys and /proc trees in a temporary folder.
#ifndef BLKPROF_TESTS_TREE_H
#define BLKPROF_TESTS_TREE_H

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
	char root[64];
};

static inline void tree_new(struct tree *t)
{
	snprintf(t->root, sizeof(t->root), "/tmp/blkprof-test-XXXXXX");
	if (!mkdtemp(t->root))
		abort();
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void tree_free(struct tree *t)
{
	nftw(t->root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *tree_path(const struct tree *t, const char *name, char *out, size_t cap)
{
	snprintf(out, cap, "%s/%s", t->root, name);
	return out;
}

// Makes the folders on the way; a name that ends in '/' is a folder.
static inline void tree_file(const struct tree *t, const char *name, const char *format, ...)
{
	char path[512];
	va_list args;
	FILE *f;

	tree_path(t, name, path, sizeof(path));
	for (char *p = path + strlen(t->root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0755);
		*p = '/';
	}
	if (path[strlen(path) - 1] == '/')
		return;
	f = fopen(path, "w");
	if (!f)
		abort();
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fclose(f);
}

#endif
