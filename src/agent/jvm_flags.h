// SPDX-License-Identifier: Apache-2.0
// Flags of a running HotSpot JVM, read from its memory: libjvm.so exports tables of its own structures (for its debugger),
// from which they are found. What is there is hostile: bounded, checked.
#ifndef BLKPROF_AGENT_JVM_FLAGS_H
#define BLKPROF_AGENT_JVM_FLAGS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/jvm_options.h"

// Variables of the library.
enum jvm_symbol {
	JVM_STRUCTS, // an array of fields of structures
	JVM_STRUCT_TYPE_NAME, // where in an entry of it
	JVM_STRUCT_FIELD_NAME,
	JVM_STRUCT_IS_STATIC,
	JVM_STRUCT_OFFSET,
	JVM_STRUCT_ADDRESS,
	JVM_STRUCT_STRIDE,
	JVM_TYPES, // an array of types
	JVM_TYPE_NAME,
	JVM_TYPE_SIZE,
	JVM_TYPE_STRIDE,
	JVM_SYMBOLS
};

struct jvm_memory {
	uint64_t symbol[JVM_SYMBOLS]; // their addresses
	size_t (*read)(void *context, uint64_t address, void *out, size_t len); // how many bytes it has read
	void *context;
};

const char *jvm_symbol_name(enum jvm_symbol symbol);
// All three flags, each on or off. -EINVAL when that memory is not a JVM's, -ENOENT when it lacks one of them.
int jvm_flags_read(const struct jvm_memory *m, struct jvm_options *ret);

#endif
