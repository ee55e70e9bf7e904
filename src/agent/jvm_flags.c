// SPDX-License-Identifier: Apache-2.0
#include "agent/jvm_flags.h"

#include <errno.h>
#include <string.h>

#define ENTRIES_MAX 16384
#define ENTRY_MAX 256 // bytes
#define NAME_MAX_BYTES 40

static const char *const symbols[JVM_SYMBOLS] = {
	[JVM_STRUCTS] = "gHotSpotVMStructs",
	[JVM_STRUCT_TYPE_NAME] = "gHotSpotVMStructEntryTypeNameOffset",
	[JVM_STRUCT_FIELD_NAME] = "gHotSpotVMStructEntryFieldNameOffset",
	[JVM_STRUCT_IS_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[JVM_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[JVM_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[JVM_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[JVM_TYPES] = "gHotSpotVMTypes",
	[JVM_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[JVM_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[JVM_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
};

const char *jvm_symbol_name(enum jvm_symbol symbol)
{
	return symbol < JVM_SYMBOLS ? symbols[symbol] : "?";
}

// Where flags are, and what of one lies where in it.
struct table {
	uint64_t flags, count, size, name, address;
	unsigned found; // of the five
};

static bool read_all(const struct jvm_memory *m, uint64_t address, void *out, size_t len)
{
	return address && m->read(m->context, address, out, len) == len;
}

static uint64_t number_at(const uint8_t *entry, uint64_t offset)
{
	uint64_t n;

	memcpy(&n, entry + offset, sizeof(n));
	return n;
}

// A short name, empty when there is none, or a longer one.
static const char *name_at(const struct jvm_memory *m, uint64_t address, char text[NAME_MAX_BYTES])
{
	size_t n = address ? m->read(m->context, address, text, NAME_MAX_BYTES) : 0;

	return n && memchr(text, 0, n) ? text : "";
}

static bool is_flag_type(const struct jvm_memory *m, uint64_t address)
{
	char text[NAME_MAX_BYTES];
	const char *name = name_at(m, address, text);

	return !strcmp(name, "JVMFlag") || !strcmp(name, "Flag"); // up to JDK 10
}

// One field of a structure, when it is of flags.
static void take_field(const struct jvm_memory *m, const uint64_t *at, const uint8_t *entry, struct table *t)
{
	bool is_static = (uint32_t)number_at(entry, at[JVM_STRUCT_IS_STATIC]);
	char text[NAME_MAX_BYTES];
	uint64_t *to = NULL;
	const char *name;

	if (!is_flag_type(m, number_at(entry, at[JVM_STRUCT_TYPE_NAME])))
		return;
	name = name_at(m, number_at(entry, at[JVM_STRUCT_FIELD_NAME]), text);
	if (is_static) {
		to = !strcmp(name, "flags") ? &t->flags : !strcmp(name, "numFlags") ? &t->count : NULL;
		t->found += to && read_all(m, number_at(entry, at[JVM_STRUCT_ADDRESS]), to, sizeof(*to));
		return;
	}
	to = !strcmp(name, "_name") ? &t->name : !strcmp(name, "_addr") ? &t->address : NULL;
	if (to)
		*to = number_at(entry, at[JVM_STRUCT_OFFSET]);
	t->found += to != NULL;
}

static void take_type(const struct jvm_memory *m, const uint64_t *at, const uint8_t *entry, struct table *t)
{
	if (!is_flag_type(m, number_at(entry, at[JVM_TYPE_NAME])))
		return;
	t->size = number_at(entry, at[JVM_TYPE_SIZE]);
	t->found++;
}

// Each entry of an array, up to the one without a name.
static bool each_entry(const struct jvm_memory *m, const uint64_t *at, enum jvm_symbol array, enum jvm_symbol name, enum jvm_symbol stride,
		       void (*take)(const struct jvm_memory *m, const uint64_t *at, const uint8_t *entry, struct table *t), struct table *t)
{
	uint8_t entry[ENTRY_MAX];

	for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
		if (!read_all(m, at[array] + i * at[stride], entry, at[stride]))
			return false;
		if (!number_at(entry, at[name]))
			return true;
		take(m, at, entry, t);
	}
	return false;
}

// What the library says of its arrays, checked: numbers lie within an entry.
static bool read_layout(const struct jvm_memory *m, uint64_t at[JVM_SYMBOLS])
{
	for (unsigned i = 0; i < JVM_SYMBOLS; i++)
		if (!read_all(m, m->symbol[i], &at[i], sizeof(at[i])))
			return false;
	for (unsigned i = 0; i < JVM_SYMBOLS; i++) {
		uint64_t stride = at[i < JVM_TYPES ? JVM_STRUCT_STRIDE : JVM_TYPE_STRIDE];

		if (stride < 8 || stride > ENTRY_MAX)
			return false;
		if (i != JVM_STRUCTS && i != JVM_TYPES && i != JVM_STRUCT_STRIDE && i != JVM_TYPE_STRIDE && at[i] > stride - 8)
			return false;
	}
	return true;
}

static bool take_flag(const struct jvm_memory *m, uint64_t name, uint64_t address, struct jvm_options *o)
{
	const struct {
		const char *name;
		enum jvm_flag *to;
	} wanted[] = {
		{ "PreserveFramePointer", &o->frame_pointers },
		{ "ReduceSignalUsage", &o->few_signals },
		{ "DisableAttachMechanism", &o->no_attach },
	};
	char text[NAME_MAX_BYTES];
	const char *told = name_at(m, name, text);
	uint8_t value;

	for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		if (strcmp(told, wanted[i].name))
			continue;
		if (!read_all(m, address, &value, 1) || value > 1)
			return false;
		*wanted[i].to = value ? JVM_ON : JVM_OFF;
	}
	return true;
}

static int read_flags(const struct jvm_memory *m, const struct table *t, struct jvm_options *ret)
{
	struct jvm_options o = { .frame_pointers = JVM_UNSAID };
	uint8_t flag[ENTRY_MAX];

	if (t->size < 8 || t->size > sizeof(flag) || t->name > t->size - 8 || t->address > t->size - 8 || t->count > ENTRIES_MAX)
		return -EINVAL;
	for (uint64_t i = 0; i < t->count; i++) {
		if (!read_all(m, t->flags + i * t->size, flag, t->size))
			return -EINVAL;
		// The last one has no name.
		if (number_at(flag, t->name) && !take_flag(m, number_at(flag, t->name), number_at(flag, t->address), &o))
			return -EINVAL;
	}
	if (o.frame_pointers == JVM_UNSAID || o.few_signals == JVM_UNSAID || o.no_attach == JVM_UNSAID)
		return -ENOENT;
	*ret = o;
	return 0;
}

int jvm_flags_read(const struct jvm_memory *m, struct jvm_options *ret)
{
	uint64_t at[JVM_SYMBOLS];
	struct table t = { 0 };

	if (!read_layout(m, at) || !each_entry(m, at, JVM_STRUCTS, JVM_STRUCT_TYPE_NAME, JVM_STRUCT_STRIDE, take_field, &t) ||
	    !each_entry(m, at, JVM_TYPES, JVM_TYPE_NAME, JVM_TYPE_STRIDE, take_type, &t) || t.found != 5)
		return -EINVAL;
	return read_flags(m, &t, ret);
}
