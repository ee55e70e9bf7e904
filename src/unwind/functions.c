// SPDX-License-Identifier: Apache-2.0
#include "unwind/functions.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

// What linkers discard leaves FDEs with addresses of nothing: 0, or an offset to it.
static bool executable(const struct elf_file *f, uint64_t start, uint64_t size)
{
	for (unsigned i = 0; i < f->loads_count; i++) {
		const struct elf_segment *s = &f->loads[i];

		if (s->flags & PF_X && start >= s->address && start - s->address < s->memory_size &&
		    size <= s->memory_size - (start - s->address))
			return true;
	}
	return false;
}

static int add(struct functions *fs, struct function item, struct error *e)
{
	if (fs->n == fs->room) {
		size_t room = fs->room + fs->room / 2 + 256;
		struct function *grown = reallocarray(fs->item, room, sizeof(*grown));

		if (!grown)
			return error_set(e, -ENOMEM, "no memory for the functions of a file");
		fs->item = grown;
		fs->room = room;
	}
	fs->item[fs->n++] = item;
	return 0;
}

int functions_collect(struct functions *fs, const struct elf_file *f, uint64_t base, struct cfi_section *s,
		      struct budget *budget, struct error *e)
{
	enum cfi_kind kind = CFI_SKIP;
	uint64_t at = 0, next = 0;
	struct cfi_fde fde;
	int err = 0;

	for (; !err; at = next) {
		err = cfi_section_read(s, at, budget, &next, &kind, &fde, e);
		if (err || kind == CFI_END)
			break;
		if (kind == CFI_BAD)
			fs->n_unusable++;
		if (kind != CFI_FDE || !fde.size || !executable(f, fde.start, fde.size) || fde.start - base + fde.size > UINT32_MAX)
			continue;
		err = add(fs, (struct function){ .start = (uint32_t)(fde.start - base), .size = (uint32_t)fde.size,
						 .offset = (uint32_t)at & INT32_MAX, .debug_frame = !s->eh_frame }, e);
	}
	return err;
}

// At one address .eh_frame, which the program itself unwinds with, goes before .debug_frame, and the longer one first.
static int compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->debug_frame != y->debug_frame)
		return x->debug_frame ? 1 : -1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void functions_sort(struct functions *fs)
{
	for (size_t i = 1; i < fs->n; i++)
		if (compare(&fs->item[i - 1], &fs->item[i]) > 0) {
			qsort(fs->item, fs->n, sizeof(*fs->item), compare);
			return;
		}
}

void functions_free(struct functions *fs)
{
	free(fs->item);
	*fs = (struct functions){ .n = 0 };
}
