// SPDX-License-Identifier: Apache-2.0
#include "collector/allow.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"

struct allow {
	char *path;
	pthread_rwlock_t lock;
	struct allowed *list;
	size_t n;
	struct stat seen; // the file as it was when it was read; only the thread that reloads uses it
};

static int by_key(const void *a, const void *b)
{
	return memcmp(((const struct allowed *)a)->key, ((const struct allowed *)b)->key, KEY_SIZE);
}

// Length of a word and of the white space behind it; 0 at the end of the line.
static char *word(char **rest)
{
	char *w = *rest + strspn(*rest, " \t\r");
	size_t len = strcspn(w, " \t\r");

	*rest = w + len;
	if (w[len]) {
		w[len] = 0;
		(*rest)++;
	}
	return w;
}

static int parse_line(char *line, struct allowed *ret, struct error *e)
{
	char *key, *node;
	int err;

	line[strcspn(line, "#")] = 0;
	key = word(&line);
	if (!*key)
		return 0;
	node = word(&line);
	if (!*node || *word(&line))
		return error_set(e, -EBADMSG, "a line is 'PUBLIC-KEY NODE'");
	err = key_parse(key, ret->key, e);
	if (err)
		return err;
	if (!batch_node_valid(node))
		return error_set(e, -EBADMSG, "'%.80s' is no name of a node (letters, digits and .-_, at most %d)", node, BATCH_NODE_MAX);
	snprintf(ret->node, sizeof(ret->node), "%s", node);
	return 1;
}

static int grow(struct allowed **list, size_t n)
{
	struct allowed *more;

	if (n & (n - 1)) // room for the next power of two is there
		return 0;
	more = realloc(*list, (n ? 2 * n : 1) * sizeof(**list));
	if (!more)
		return -ENOMEM;
	*list = more;
	return 0;
}

static int check_unique(const struct allowed *list, size_t n, struct error *e)
{
	char key[KEY_TEXT];

	for (size_t i = 1; i < n; i++) {
		if (memcmp(list[i - 1].key, list[i].key, KEY_SIZE))
			continue;
		key_text(list[i].key, key);
		return error_set(e, -EBADMSG, "the key %s is there twice: for %s and for %s", key, list[i - 1].node, list[i].node);
	}
	return 0;
}

int allow_parse(char *text, struct allowed **ret, size_t *ret_n, struct error *e)
{
	struct allowed *list = NULL;
	char *line;
	size_t n = 0;
	int err = 0;

	for (unsigned number = 1; !err && (line = strsep(&text, "\n")); number++) {
		if (grow(&list, n)) {
			err = error_set(e, -ENOMEM, "out of memory");
			break;
		}
		err = parse_line(line, &list[n], e);
		if (err < 0)
			error_prefix(e, err, "line %u", number);
		n += err == 1;
		err = err < 0 ? err : 0;
	}
	if (!err && n)
		qsort(list, n, sizeof(*list), by_key);
	if (!err)
		err = check_unique(list, n, e);
	if (err) {
		free(list);
		return err;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static int read_list(struct allow *a, struct allowed **ret, size_t *ret_n, struct error *e)
{
	struct buf b = { 0 };
	struct stat st = { 0 };
	int err;

	// Before it is read: a change while it is read is seen the next time.
	stat(a->path, &st);
	err = file_read(a->path, ALLOW_BYTES_MAX, &b);
	if (err)
		error_set(e, err, "cannot read allowed_keys %.200s: %s%s", a->path, strerror(-err),
			  err == -ENOENT ? "; make it, with a line 'PUBLIC-KEY NODE' for each node that may send" : "");
	else if (memchr(b.data, 0, b.len))
		err = error_set(e, -EBADMSG, "%.200s: it is no text file", a->path);
	else if ((err = allow_parse((char *)b.data, ret, ret_n, e)))
		error_prefix(e, err, "%.110s", a->path);
	a->seen = st;
	buf_free(&b);
	return err;
}

int allow_reload(struct allow *a, struct error *e)
{
	struct allowed *list, *old;
	size_t n;
	int err = read_list(a, &list, &n, e);

	if (err)
		return err;
	pthread_rwlock_wrlock(&a->lock);
	old = a->list;
	a->list = list;
	a->n = n;
	pthread_rwlock_unlock(&a->lock);
	free(old);
	return 0;
}

bool allow_changed(struct allow *a)
{
	struct stat st;

	if (stat(a->path, &st))
		return false; // in the middle of being replaced, or gone: the list stays
	return st.st_ino != a->seen.st_ino || st.st_dev != a->seen.st_dev || st.st_size != a->seen.st_size ||
	       st.st_mtim.tv_sec != a->seen.st_mtim.tv_sec || st.st_mtim.tv_nsec != a->seen.st_mtim.tv_nsec;
}

int allow_new(const char *path, struct allow **ret, struct error *e)
{
	struct allow *a = calloc(1, sizeof(*a));
	int err;

	if (a)
		a->path = strdup(path);
	if (!a || !a->path) {
		free(a);
		return error_set(e, -ENOMEM, "out of memory");
	}
	pthread_rwlock_init(&a->lock, NULL);
	err = allow_reload(a, e);
	if (err)
		allow_free(a);
	else
		*ret = a;
	return err;
}

void allow_free(struct allow *a)
{
	if (!a)
		return;
	pthread_rwlock_destroy(&a->lock);
	free(a->list);
	free(a->path);
	free(a);
}

bool allow_node(struct allow *a, const uint8_t key[KEY_SIZE], char ret[BATCH_NODE_MAX + 1])
{
	struct allowed want;
	const struct allowed *found = NULL;

	memcpy(want.key, key, KEY_SIZE);
	pthread_rwlock_rdlock(&a->lock);
	if (a->n)
		found = bsearch(&want, a->list, a->n, sizeof(*a->list), by_key);
	if (found)
		memcpy(ret, found->node, sizeof(found->node));
	pthread_rwlock_unlock(&a->lock);
	return found;
}

size_t allow_count(struct allow *a)
{
	size_t n;

	pthread_rwlock_rdlock(&a->lock);
	n = a->n;
	pthread_rwlock_unlock(&a->lock);
	return n;
}
