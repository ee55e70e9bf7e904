// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "agent/proctable_internal.h"
#include "symbolize/procmaps.h"

static size_t text_size(size_t len)
{
	// uthash's buckets cost about two words an element.
	return sizeof(struct proc_text) + len + 1 + 16;
}

static struct proc_text *keep(struct proctable *t, const struct proc_text_key *identity, const char *text, size_t len)
{
	union {
		struct proc_text_key key;
		char bytes[sizeof(struct proc_text_key) + PATH_MAX];
	} wanted;
	struct proc_text *found;
	size_t key_len;

	if (len >= PATH_MAX)
		len = PATH_MAX - 1;
	key_len = sizeof(*identity) + len;
	wanted.key = *identity;
	memcpy(wanted.bytes + sizeof(wanted.key), text, len);
	HASH_FIND(hh, t->texts, &wanted, key_len, found);
	if (found) {
		found->users++;
		return found;
	}
	found = proctable_alloc(t, text_size(len));
	if (!found)
		return NULL;
	memcpy(&found->key, &wanted, key_len);
	found->key.text[len] = 0;
	HASH_ADD_KEYPTR(hh, t->texts, &found->key, key_len, found);
	if (!found->hh.tbl) {
		proctable_release(t, found, text_size(len));
		return NULL;
	}
	found->users = 1;
	return found;
}

struct proc_text *proctable_keep(struct proctable *t, const char *text, size_t len)
{
	static const struct proc_text_key none;

	return keep(t, &none, text, len);
}

struct proc_text *proctable_keep_file(struct proctable *t, const struct proc_event *ev)
{
	struct proc_text_key identity = { ev->dev, ev->inode, ev->generation };
	bool deleted;

	return keep(t, &identity, ev->text, procmaps_strip_deleted(ev->text, ev->text_len, &deleted));
}

struct proc_text *proctable_share(struct proc_text *text)
{
	if (text)
		text->users++;
	return text;
}

void proctable_drop(struct proctable *t, struct proc_text *text)
{
	if (!text || --text->users)
		return;
	HASH_DEL(t->texts, text);
	proc_text_set_module(text, NULL);
	proctable_release(t, text, text_size(text->hh.keylen - sizeof(struct proc_text_key)));
}

void proctable_set(struct proctable *t, struct proc_text **field, const char *text, size_t len)
{
	struct proc_text *fresh;

	t->keep_all = true;
	fresh = proctable_keep(t, text, len);
	t->keep_all = false;
	if (!fresh)
		return;
	proctable_drop(t, *field);
	*field = fresh;
}

const char *proc_text_string(const struct proc_text *t)
{
	return t ? t->key.text : "";
}

dev_t proc_text_dev(const struct proc_text *t)
{
	return t->key.dev;
}

uint64_t proc_text_inode(const struct proc_text *t)
{
	return t->key.inode;
}

struct proc_module *proc_text_module(const struct proc_text *t)
{
	return t->module;
}

void proc_text_set_module(struct proc_text *t, struct proc_module *module)
{
	if (module)
		module->users++;
	if (t->module)
		t->module->users--;
	t->module = module;
}

bool proc_text_is_anonymous(const struct proc_text *t)
{
	const char *s = t->key.text;

	if (t->key.inode)
		return false;
	return s[0] != '[' || !strcmp(s, "[heap]") || !strncmp(s, "[stack", 6) || !strncmp(s, "[anon", 5);
}
