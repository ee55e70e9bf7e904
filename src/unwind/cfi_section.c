// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi_section.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/dw_cursor.h"
#include "unwind/registers.h"

static const char *name_of(const struct cfi_section *s)
{
	return s->eh_frame ? ".eh_frame" : ".debug_frame";
}

static Elf_Data data_of(const struct cfi_section *s)
{
	return (Elf_Data){ .d_buf = s->data, .d_type = ELF_T_BYTE, .d_version = EV_CURRENT, .d_size = s->len };
}

static int next_entry(const struct cfi_section *s, uint64_t offset, uint64_t *next, Dwarf_CFI_Entry *entry)
{
	static const unsigned char ident[EI_NIDENT] = { ELFMAG0,     ELFMAG1,	  ELFMAG2,   ELFMAG3,
							ELFCLASS64, ELFDATA2LSB, EV_CURRENT };
	Elf_Data data = data_of(s);

	return dwarf_next_cfi(ident, &data, s->eh_frame, offset, next, entry);
}

// What the letters of an augmentation that starts with z say. False when the encoding of pointers stays unknown.
static bool read_augmentation(struct cfi_cie *cie, const char *letters, struct dw_cursor c)
{
	for (; *letters && !c.bad; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = dw_byte(&c);
			break;
		case 'L':
			dw_byte(&c);
			break;
		case 'P':
			dw_value(&c, dw_byte(&c), true);
			break;
		case 'S': // a signal frame: seen by its rules
		case 'B':
			break;
		default:
			return false;
		}
	}
	return !c.bad && cie->encoding != DW_EH_PE_omit;
}

static int read_cie(struct cfi_section *s, const Dwarf_CIE *from, struct budget *budget, struct cfi_cie *cie)
{
	const uint8_t *augmentation = from->augmentation_data;
	struct cfa_code code = { from->initial_instructions, from->initial_instructions_end, from->code_alignment_factor,
				 from->data_alignment_factor, 0, s->data, s->address };
	int err;

	cie->code_factor = from->code_alignment_factor;
	cie->data_factor = from->data_alignment_factor;
	cie->sized = from->augmentation[0] == 'z';
	if (cie->sized) {
		if (!read_augmentation(cie, from->augmentation + 1,
				       dw_cursor_at(augmentation, augmentation + from->augmentation_data_size)))
			return 0;
	} else if (from->augmentation[0]) {
		return 0; // where instructions begin is not known
	}
	if (from->return_address_register != REG_RIP)
		return 0;
	err = cfa_program_run(&code, 0, 1, NULL, NULL, budget, &cie->initial);
	cie->usable = !err;
	return err == -EFBIG ? err : 0;
}

static int find_cie(struct cfi_section *s, uint64_t offset, struct budget *budget, const struct cfi_cie **ret)
{
	struct cfi_cie *cie = &s->cies[(offset ^ offset >> 6) % CFI_CIES];
	Dwarf_CFI_Entry entry;
	uint64_t next;

	*ret = cie;
	if (cie->key == offset + 1)
		return 0;
	memset(cie, 0, sizeof(*cie));
	cie->key = offset + 1;
	if (offset >= s->len || next_entry(s, offset, &next, &entry) || !dwarf_cfi_cie_p(&entry))
		return 0;
	return read_cie(s, &entry.cie, budget, cie);
}

static uint64_t address_at(const struct cfi_section *s, const uint8_t *p)
{
	return s->address + (uint64_t)(p - s->data);
}

static bool read_fde(const struct cfi_section *s, const Dwarf_FDE *from, const struct cfi_cie *cie, struct cfi_fde *fde)
{
	struct dw_cursor c = dw_cursor_at(from->start, from->end);
	uint64_t end;

	if (!cie->usable)
		return false;
	fde->start = dw_pointer(&c, cie->encoding, address_at(s, c.at), true);
	fde->size = dw_value(&c, cie->encoding & 0x0f, true);
	if (cie->sized)
		dw_skip(&c, dw_uleb(&c));
	if (c.bad || __builtin_add_overflow(fde->start, fde->size, &end))
		return false;
	fde->cie = cie;
	fde->code = (struct cfa_code){ c.at,	       from->end, cie->code_factor, cie->data_factor,
				       cie->encoding, s->data,	  s->address };
	return true;
}

// Linkers leave the ends of input sections as words of zero in the middle.
static bool terminator(const struct cfi_section *s, uint64_t offset)
{
	return !memcmp(s->data + offset, "\0\0\0", 4);
}

int cfi_section_read(struct cfi_section *s, uint64_t offset, struct budget *budget, uint64_t *ret_next,
		     enum cfi_kind *ret_kind, struct cfi_fde *ret_fde, struct error *e)
{
	const struct cfi_cie *cie;
	Dwarf_CFI_Entry entry;
	uint64_t next = 0;
	int got;

	*ret_kind = CFI_END;
	if (offset >= s->len || s->len - offset < 8)
		return 0;
	if (!budget_spend(budget, 64))
		return error_set(e, -EFBIG, "%s takes too much time to read", name_of(s));
	*ret_kind = CFI_SKIP;
	if (terminator(s, offset)) {
		if (s->open_end)
			*ret_kind = CFI_END;
		*ret_next = offset + 4;
		return 0;
	}
	got = next_entry(s, offset, &next, &entry);
	if (got > 0) {
		*ret_kind = CFI_END;
		return 0;
	}
	if (next <= offset || next > s->len)
		return error_set(e, -EBADMSG, "%s has an entry of a wrong length at offset 0x%llx", name_of(s),
				 (unsigned long long)offset);
	*ret_next = next;
	if (got < 0 || dwarf_cfi_cie_p(&entry))
		return 0;
	if (find_cie(s, entry.fde.CIE_pointer, budget, &cie))
		return error_set(e, -EFBIG, "%s takes too much time to read", name_of(s));
	*ret_kind = read_fde(s, &entry.fde, cie, ret_fde) ? CFI_FDE : CFI_BAD;
	return 0;
}

void cfi_section_free(struct cfi_section *s)
{
	if (!s)
		return;
	free(s->data);
	free(s);
}
