// SPDX-License-Identifier: Apache-2.0
// The memory of a process that says it is a JVM: the input lies at address 4096, and begins with the symbols' variables.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jvm_flags.h"

#define BASE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct memory {
	const uint8_t *data;
	size_t len;
};

static size_t read_memory(void *context, uint64_t address, void *out, size_t len)
{
	const struct memory *m = context;

	if (address < BASE || address - BASE >= m->len)
		return 0;
	address -= BASE;
	len = len < m->len - address ? len : m->len - address;
	memcpy(out, m->data + address, len);
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct memory memory = { data, len };
	struct jvm_memory m = { .read = read_memory, .context = &memory };
	struct jvm_options o = { .unread = true };

	for (unsigned i = 0; i < JVM_SYMBOLS; i++)
		m.symbol[i] = BASE + 8 * i;
	if (!jvm_flags_read(&m, &o) && (o.unread || !o.frame_pointers || !o.few_signals || !o.no_attach))
		abort();
	return 0;
}
