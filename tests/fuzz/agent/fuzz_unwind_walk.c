// SPDX-License-Identifier: Apache-2.0
// The kernel side's walk over whatever stack, mappings and tables: it ends, stays in its arenas and in the stack that it
// was given, and its frames rise. Input: registers, how many mappings and rules, then words of one arena, then rules, then
// the stack.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_user.h"

#define STACK 0x7ffc00000000ull

static u32 *arenas[2]; // two hold something, each of its own size for the sanitizer
static struct unwind_rule *rules;
static const uint8_t *stack;
static size_t stack_size;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static u32 *words(u32 place)
{
	u32 arena = place >> UNWIND_ARENA_BITS;

	return arena < 2 ? arenas[arena] : NULL;
}

static long read_stack(void *out, u32 size, u64 address)
{
	if (address < STACK || address - STACK > stack_size || size > stack_size - (address - STACK))
		return -1;
	memcpy(out, stack + (address - STACK), size);
	return 0;
}

struct head {
	u64 ip, sp, bp;
	u32 list, n_list;
	u16 n_words, n_rules;
	u32 pad;
};

static void setup(void)
{
	if (arenas[0])
		return;
	arenas[0] = calloc(UNWIND_ARENA_WORDS, sizeof(u32));
	arenas[1] = calloc(UNWIND_ARENA_WORDS, sizeof(u32));
	rules = calloc(UNWIND_RULES, sizeof(*rules));
	unwind_user.words = words;
	unwind_user.rules = rules;
	unwind_user.read = read_stack;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_user_stack s;
	struct unwind_walk w = { 0 };
	struct head h;
	size_t n_words, n_rules;
	u64 sp;

	setup();
	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	data += sizeof(h);
	size -= sizeof(h);
	n_words = h.n_words * sizeof(u32) < size ? h.n_words : size / sizeof(u32);
	// The last words too: indexes wrap there.
	memcpy(arenas[0], data, n_words * sizeof(u32));
	memcpy(arenas[1] + UNWIND_ARENA_WORDS - n_words, data, n_words * sizeof(u32));
	data += n_words * sizeof(u32);
	size -= n_words * sizeof(u32);
	n_rules = h.n_rules * sizeof(*rules) < size ? h.n_rules : size / sizeof(*rules);
	if (n_rules > UNWIND_RULES)
		n_rules = UNWIND_RULES;
	memcpy(rules, data, n_rules * sizeof(*rules));
	stack = data + n_rules * sizeof(*rules);
	stack_size = size - n_rules * sizeof(*rules);
	w.ip = h.ip;
	w.sp = h.sp % 2 ? h.sp : STACK + (h.sp >> 1) % 4096;
	w.bp = h.bp % 2 ? h.bp : STACK + (h.bp >> 1) % 4096;
	w.list = h.list;
	w.n_list = h.n_list;
	w.exact = 1;
	unwind_user_walk(&w, &s);
	if (s.n > RECORD_FRAMES || w.broken >= UNWIND_BREAKS)
		abort();
	// Again, a frame at a time: but for signals, whose stacks may lie anywhere, frames rise.
	w.ip = h.ip;
	w.sp = sp = STACK;
	w.bp = STACK + (h.bp >> 1) % 4096;
	w.exact = 1;
	w.bp_lost = w.broken = w.pending = 0;
	memset(&w.map, 0, sizeof(w.map));
	for (unsigned i = 0; i < RECORD_FRAMES && unwind_frame(&w) == UNWIND_ON; i++) {
		if (!w.exact && w.sp <= sp)
			abort();
		sp = w.sp;
	}
	return 0;
}
