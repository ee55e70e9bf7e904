// SPDX-License-Identifier: Apache-2.0
#include "collector/solr_schema.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/solr_check.h"

struct schema {
	json_t *types, *dynamic, *fields; // arrays of objects with a name
	char unique_key[64];
};

static void schema_free(struct schema *s)
{
	json_decref(s->types);
	json_decref(s->dynamic);
	json_decref(s->fields);
}

static int get(struct solr_client *c, const char *path, json_t **ret, struct error *e)
{
	const struct buf *body;
	int status = solr_get(c, path, &body, e);

	if (status < 0)
		return status;
	if (status != 200)
		return solr_explain(c, status, body, -EIO, e);
	*ret = json_loadb((const char *)body->data, body->len, 0, NULL);
	return *ret ? 0 : error_set(e, -EBADMSG, "Solr at %.200s gives no JSON for %s: is it a Solr?", solr_client_url(c), path);
}

static int get_list(struct solr_client *c, const char *path, const char *key, json_t **ret, struct error *e)
{
	json_t *answer;
	int err = get(c, path, &answer, e);

	if (err)
		return err;
	*ret = json_incref(json_object_get(answer, key));
	json_decref(answer);
	return *ret ? 0 : error_set(e, -EBADMSG, "Solr at %.200s has no %s in its answer", solr_client_url(c), key);
}

static int schema_read(struct solr_client *c, struct schema *ret, struct error *e)
{
	json_t *answer;
	int err = get(c, "schema/uniquekey", &answer, e);

	if (err)
		return err;
	snprintf(ret->unique_key, sizeof(ret->unique_key), "%s", json_string_value(json_object_get(answer, "uniqueKey")) ?: "");
	json_decref(answer);
	err = get_list(c, "schema/fieldtypes", "fieldTypes", &ret->types, e);
	if (!err)
		err = get_list(c, "schema/dynamicfields", "dynamicFields", &ret->dynamic, e);
	return err ? err : get_list(c, "schema/fields", "fields", &ret->fields, e);
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key)) ?: "";
}

static const json_t *named(const json_t *list, const char *name)
{
	size_t i;
	json_t *one;

	json_array_foreach(list, i, one)
		if (!strcmp(text_of(one, "name"), name))
			return one;
	return NULL;
}

// Is the class ("solr.IntPointField", or with its package) the one that is wanted, or its elder (TrieIntField)?
static bool class_fits(const char *class, const char *wanted)
{
	const char *last = strrchr(class, '.'), *want = strchr(wanted, '.') + 1;
	size_t kind = strcspn(want, "P");

	last = last ? last + 1 : class;
	return !strcmp(last, want) || (!strcmp(want + kind, "PointField") && !strncmp(last, "Trie", 4) &&
				       !strncmp(last + 4, want, kind) && !strcmp(last + 4 + kind, "Field"));
}

static int field_fits(const struct schema *s, const json_t *field, const struct solr_type *t, struct error *e)
{
	const json_t *type = named(s->types, text_of(field, "type"));
	const json_t *many = json_object_get(field, "multiValued") ?: json_object_get(type, "multiValued");

	if (!type || !class_fits(text_of(type, "class"), t->type_class))
		return error_set(e, -EPROTO, "Solr's field %.100s has the type %.100s (%.100s), and %s is needed: use another collection",
				 text_of(field, "name"), text_of(field, "type"), text_of(type, "class"), t->type_class);
	if (t->many && !json_is_true(many))
		return error_set(e, -EPROTO, "Solr's field %.100s takes one value, and several are needed: use another collection",
				 text_of(field, "name"));
	return 0;
}

// Fields that are there by their whole name come before patterns.
static int fields_fit(const struct schema *s, struct error *e)
{
	static const struct solr_type text = { "", "string", "solr.StrField", false };
	const json_t *id = named(s->fields, "id");
	size_t i;
	json_t *field;

	if (strcmp(s->unique_key, "id"))
		return error_set(e, -EPROTO, "Solr's key is the field '%s', and id is needed: use another collection", s->unique_key);
	if (!id || field_fits(s, id, &text, e))
		return id ? -EPROTO : error_set(e, -EPROTO, "Solr has no field id: use another collection");
	json_array_foreach(s->fields, i, field) {
		const char *name = text_of(field, "name");
		const struct solr_type *t = solr_type_of(name, strlen(name));

		if (t && name[0] != '_' && field_fits(s, field, t, e))
			return -EPROTO;
	}
	return 0;
}

static const json_t *pattern_of(const struct schema *s, const struct solr_type *t)
{
	char name[16];

	snprintf(name, sizeof(name), "*%s", t->suffix);
	return named(s->dynamic, name);
}

static int check(const struct schema *s, const struct solr_type **ret_missing, struct error *e)
{
	int err = fields_fit(s, e);

	*ret_missing = NULL;
	for (unsigned i = 0; i < solr_types_n && !err; i++) {
		const json_t *field = pattern_of(s, &solr_types[i]);

		if (field)
			err = field_fits(s, field, &solr_types[i], e);
		else if (!*ret_missing)
			*ret_missing = &solr_types[i];
	}
	return err;
}

int solr_schema_check(struct solr_client *c, struct error *e)
{
	struct schema s = { 0 };
	const struct solr_type *missing;
	int err = schema_read(c, &s, e);

	if (!err)
		err = check(&s, &missing, e);
	if (!err && missing)
		err = error_set(e, -ENOENT, "Solr at %.200s has no field *%s: 'blkprof collector --init-solr -c FILE' creates what is missing",
				solr_client_url(c), missing->suffix);
	schema_free(&s);
	return err;
}

static int command(struct solr_client *c, json_t *commands, struct error *e)
{
	char *text = json_dumps(commands, JSON_COMPACT);
	const struct buf *body;
	int status = text ? solr_post(c, "schema", text, strlen(text), &body, e) : error_set(e, -ENOMEM, "out of memory");

	free(text);
	if (status < 0)
		return status;
	return status == 200 ? 0 : solr_explain(c, status, body, -EIO, e);
}

static int add_type(struct solr_client *c, const struct solr_type *t, const char *name, solr_say_fn say, void *context, struct error *e)
{
	json_t *commands = json_pack("{s:{s:s,s:s,s:b}}", "add-field-type", "name", name, "class", t->type_class, "docValues", 1);
	int err = commands ? command(c, commands, e) : error_set(e, -ENOMEM, "out of memory");
	char line[120];

	json_decref(commands);
	snprintf(line, sizeof(line), "created the type %s", name);
	if (!err)
		say(context, line);
	return err;
}

// The type's own name, unless somebody else's is called that.
static int add_pattern(struct solr_client *c, const struct schema *s, const struct solr_type *t, solr_say_fn say, void *context,
		       struct error *e)
{
	const json_t *there = named(s->types, t->type);
	bool fits = there && class_fits(text_of(there, "class"), t->type_class);
	char name[16], type[40], line[120];
	json_t *commands;
	int err = 0;

	snprintf(name, sizeof(name), "*%s", t->suffix);
	snprintf(type, sizeof(type), "%s%s", there && !fits ? "blkprof_" : "", t->type);
	if (!fits && !named(s->types, type))
		err = add_type(c, t, type, say, context, e);
	if (err)
		return err;
	commands = json_pack("{s:{s:s,s:s,s:b,s:b,s:b,s:b}}", "add-dynamic-field", "name", name, "type", type, "indexed", 1, "stored", 1,
			     "docValues", 1, "multiValued", t->many);
	err = commands ? command(c, commands, e) : error_set(e, -ENOMEM, "out of memory");
	json_decref(commands);
	snprintf(line, sizeof(line), "created the fields %s of type %s", name, type);
	if (!err)
		say(context, line);
	return err;
}

int solr_schema_init(struct solr_client *c, solr_say_fn say, void *context, struct error *e)
{
	struct schema s = { 0 };
	const struct solr_type *missing;
	int err = schema_read(c, &s, e);

	if (!err)
		err = check(&s, &missing, e);
	for (unsigned i = 0; i < solr_types_n && !err && missing; i++)
		if (!pattern_of(&s, &solr_types[i])) {
			err = add_pattern(c, &s, &solr_types[i], say, context, e);
			// Two patterns may need one type.
			schema_free(&s);
			s = (struct schema){ 0 };
			if (!err)
				err = schema_read(c, &s, e);
		}
	schema_free(&s);
	return err ? err : solr_schema_check(c, e);
}
