// SPDX-License-Identifier: Apache-2.0
// What a HotSpot JVM was told of three flags: by its command line, JDK_JAVA_OPTIONS, JAVA_TOOL_OPTIONS, _JAVA_OPTIONS and
// the files that these name. All of it is hostile.
#ifndef BLKPROF_AGENT_JVM_OPTIONS_H
#define BLKPROF_AGENT_JVM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

#define JVM_OPTIONS_FILES 16 // files of options that are read

enum jvm_flag { JVM_UNSAID, JVM_ON, JVM_OFF };

struct jvm_options {
	enum jvm_flag frame_pointers; // PreserveFramePointer
	enum jvm_flag few_signals;    // ReduceSignalUsage, -Xrs
	enum jvm_flag no_attach;      // DisableAttachMechanism
	bool unread;		      // more may have been said, where it was not read
};

// Appends the file; path is not terminated. False when it cannot be read whole.
typedef bool (*jvm_options_file_fn)(void *context, const char *path, size_t len, struct buf *ret);

struct jvm_options_source {
	// Of /proc/PID: each text ends with NUL.
	const char *arguments, *environment;
	size_t arguments_len, environment_len;
	// The program is `java`: it reads JDK_JAVA_OPTIONS and files behind @, and what follows the main class is not the
	// JVM's. Other programs give their JVM options that nobody sees: that is said as `unread`.
	bool launcher;
	jvm_options_file_fn file; // NULL = none can be read
	void *context;
};

void jvm_options_parse(const struct jvm_options_source *source, struct jvm_options *ret);

#endif
