// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_file.h"
#include "unwind/cfi_section.h"
#include "unwind/functions.h"
#include "unwind/rows.h"
#include "unwind/unwind.h"

#define FILE_MAX    (UINT64_C(4) << 30)
#define CFI_MAX	    (256u << 20)
#define ROWS_MAX    8000000u
#define CPU_MAX	    UINT64_C(10000000000)
#define PADDING_MAX 16 // functions are aligned to that
#define NAMES_MAX   (4u << 20)
#define PAGE	    4096

struct compiler {
	struct elf_file file;
	struct unwind_limits limits;
	struct budget budget;
	struct cfi_section *eh_frame, *debug_frame;
	struct functions functions;
	struct rows rows;
	const struct unwind_rule *hole; // what holds where no function is
	bool contexts;			// has makecontext, or calls it
	int err; // of the rows
	struct error *e;
};

static const struct unwind_rule no_rule;
static const struct unwind_rule outermost = { .cfa = UNWIND_CFA_END };
static const struct unwind_rule frame_pointer = { .cfa = UNWIND_CFA_RBP, .cfa_offset = 16, .rbp = UNWIND_RBP_CFA,
						  .rbp_offset = -16 };

static struct unwind_limits limits_of(const struct unwind_limits *given)
{
	struct unwind_limits l = given ? *given : (struct unwind_limits){ .rows = 0 };

	l.file = l.file ? l.file : FILE_MAX;
	l.cfi = l.cfi ? l.cfi : CFI_MAX;
	l.cfi = l.cfi < INT32_MAX ? l.cfi : INT32_MAX; // offsets have 31 bits
	l.rows = l.rows ? l.rows : ROWS_MAX;
	l.cpu_ns = l.cpu_ns ? l.cpu_ns : CPU_MAX;
	return l;
}

static int open_file(struct compiler *c, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), err;

	if (own < 0)
		return error_set(c->e, -errno, "cannot duplicate a descriptor: %s", strerror(errno));
	err = elf_file_open(&c->file, own, c->e);
	if (err)
		return err == -ENOEXEC || err == -E2BIG ? -EINVAL : err;
	if (!c->file.is64 || c->file.machine != EM_X86_64)
		return error_set(c->e, -EINVAL, "not an ELF file of x86-64");
	if (c->file.size > c->limits.file)
		return error_set(c->e, -EFBIG, "the file has %llu bytes, more than the limit of %zu",
				 (unsigned long long)c->file.size, c->limits.file);
	return 0;
}

static int find_base(struct compiler *c, uint64_t *ret)
{
	uint64_t lowest = UINT64_MAX;

	for (unsigned i = 0; i < c->file.loads_count; i++)
		if (c->file.loads[i].flags & PF_X && c->file.loads[i].address < lowest)
			lowest = c->file.loads[i].address;
	if (lowest == UINT64_MAX)
		return error_set(c->e, -ENODATA, "the file has no executable segment");
	*ret = lowest & ~(uint64_t)(PAGE - 1);
	return 0;
}

// Go's own unwinding knows nothing of .eh_frame: its code has frame pointers, and its .debug_frame does not say where
// they are kept. A file has both when it links C code.
static int load_sections(struct compiler *c)
{
	bool go = elf_file_section(&c->file, ".gopclntab") != NULL;
	int err = cfi_section_eh_frame(&c->file, c->limits.cfi, &c->eh_frame, c->e);

	if (!err && !go)
		err = cfi_section_debug_frame(&c->file, c->limits.cfi, &c->debug_frame, c->e);
	c->hole = go ? &frame_pointer : &no_rule;
	if (!err && !c->eh_frame && !c->debug_frame)
		err = error_set(c->e, -ENODATA, go ? "a Go program, which has frame pointers and no .eh_frame"
						   : "the file has neither .eh_frame nor .debug_frame");
	return err;
}

static bool mentions(const struct elf_file *f, const char *section, const char *name)
{
	const struct elf_section *s = elf_file_section(f, section);
	size_t len = 0;
	uint8_t *data = s ? elf_file_section_data(f, s, NAMES_MAX, &len) : NULL;
	bool found = data && memmem(data, len, name, strlen(name) + 1);

	free(data);
	return found;
}

// makecontext leaves the address of glibc's __start_context, where a context's function returns to: nobody called from there,
// and the byte before it, which a walk asks for, is padding. It takes rsp from rbx at once, which no other function does.
static bool starts_context(const struct compiler *c, const struct function *f)
{
	static const uint8_t mov_rbx_rsp[] = { 0x48, 0x89, 0xdc };
	uint8_t code[sizeof(mov_rbx_rsp)];

	return c->contexts &&
	       elf_file_read_address(&c->file, c->rows.table->base + f->start, code, sizeof(code)) == sizeof(code) &&
	       !memcmp(code, mov_rbx_rsp, sizeof(code));
}

static int collect(struct compiler *c, uint64_t base)
{
	int err = 0;

	if (c->eh_frame)
		err = functions_collect(&c->functions, &c->file, base, c->eh_frame, &c->budget, c->e);
	if (!err && c->debug_frame)
		err = functions_collect(&c->functions, &c->file, base, c->debug_frame, &c->budget, c->e);
	if (!err && !c->functions.n)
		err = error_set(c->e, -ENODATA, "the call frame information describes no function of the file");
	functions_sort(&c->functions);
	return err;
}

static void add_row(struct compiler *c, uint64_t pc, const struct unwind_rule *rule)
{
	if (!c->err)
		c->err = unwind_rows_add(&c->rows, (uint32_t)pc, rule, c->e);
}

static bool take_row(void *context, uint64_t pc, const struct cfa_state *state)
{
	struct compiler *c = context;
	struct unwind_rule rule;

	if (!cfa_state_rule(state, &rule))
		c->rows.table->n_unsupported++;
	add_row(c, pc - c->rows.table->base, &rule);
	return !c->err;
}

static void run_function(struct compiler *c, const struct function *f, uint64_t end)
{
	struct cfi_section *s = f->debug_frame ? c->debug_frame : c->eh_frame;
	const struct cfa_sink sink = { c, take_row };
	uint64_t base = c->rows.table->base, next;
	enum cfi_kind kind;
	struct cfi_fde fde;
	int err = cfi_section_read(s, f->offset, &c->budget, &next, &kind, &fde, c->e);

	if (err || kind != CFI_FDE) {
		c->err = err;
		return;
	}
	err = cfa_program_run(&fde.code, fde.start, base + end, &fde.cie->initial, &sink, &c->budget, NULL);
	if (err == -EFBIG)
		c->err = error_set(c->e, err, "its call frame programs take more CPU time than the limit");
}

// In order of address. Of functions that overlap, each ends where the next begins.
static int run_all(struct compiler *c)
{
	const struct functions *fs = &c->functions;
	uint64_t covered = fs->item[0].start;

	for (size_t i = 0; i < fs->n && !c->err; i++) {
		const struct function *f = &fs->item[i];
		uint64_t end = (uint64_t)f->start + f->size;

		if (i && f->start == fs->item[i - 1].start)
			continue;
		if (f->start >= covered + PADDING_MAX)
			add_row(c, covered, c->hole);
		for (size_t k = i + 1; k < fs->n && fs->item[k].start < end; k++)
			if (fs->item[k].start > f->start)
				end = fs->item[k].start;
		if (f->start > covered && starts_context(c, f))
			add_row(c, f->start - 1, &outermost);
		run_function(c, f, end);
		covered = end;
	}
	add_row(c, covered, c->hole);
	return c->err;
}

static int compile(struct compiler *c, int fd)
{
	uint64_t base = 0;
	int err = open_file(c, fd);

	if (!err)
		err = find_base(c, &base);
	if (!err)
		err = load_sections(c);
	if (!err)
		err = collect(c, base);
	if (!err)
		err = unwind_rows_begin(&c->rows, base, c->limits.rows, c->e);
	if (err)
		return err;
	c->contexts = mentions(&c->file, ".dynstr", "makecontext") || mentions(&c->file, ".strtab", "makecontext");
	c->rows.table->n_unsupported = c->functions.n_unusable;
	return run_all(c);
}

int unwind_compile(int fd, const struct unwind_limits *limits, struct unwind_table **ret, struct error *e)
{
	struct compiler c = { .limits = limits_of(limits), .e = e, .file.fd = -1 };
	int err;

	c.budget = budget_of(c.limits.cpu_ns);
	err = compile(&c, fd);
	if (!err)
		*ret = unwind_rows_end(&c.rows);
	unwind_rows_free(&c.rows);
	functions_free(&c.functions);
	cfi_section_free(c.eh_frame);
	cfi_section_free(c.debug_frame);
	elf_file_close(&c.file);
	return err;
}
