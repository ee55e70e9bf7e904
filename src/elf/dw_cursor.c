// SPDX-License-Identifier: Apache-2.0
#include "elf/dw_cursor.h"

#define PE_FORMAT   0x0f
#define PE_RELATIVE 0x70
#define PE_PCREL    0x10
#define PE_INDIRECT 0x80

static uint64_t leb(struct dw_cursor *c, unsigned *ret_shift, uint8_t *ret_last)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = dw_byte(c);
		if (shift < 64) {
			v |= (uint64_t)(byte & 0x7f) << shift;
			shift += 7;
		}
	} while (byte & 0x80 && !c->bad);
	*ret_shift = shift;
	*ret_last = byte;
	return c->bad ? 0 : v;
}

uint64_t dw_uleb(struct dw_cursor *c)
{
	unsigned shift;
	uint8_t last;

	return leb(c, &shift, &last);
}

int64_t dw_sleb(struct dw_cursor *c)
{
	unsigned shift;
	uint8_t last;
	uint64_t v = leb(c, &shift, &last);

	if (!c->bad && shift < 64 && last & 0x40)
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

uint64_t dw_value(struct dw_cursor *c, uint8_t encoding, bool is64)
{
	switch (encoding & PE_FORMAT) {
	case 0x00:
		return dw_take(c, is64 ? 8 : 4);
	case 0x01:
		return dw_uleb(c);
	case 0x02:
		return dw_take(c, 2);
	case 0x03:
		return dw_take(c, 4);
	case 0x04:
	case 0x0c:
		return dw_take(c, 8);
	case 0x09:
		return (uint64_t)dw_sleb(c);
	case 0x0a:
		return (uint64_t)(int64_t)(int16_t)dw_take(c, 2);
	case 0x0b:
		return (uint64_t)(int64_t)(int32_t)dw_take(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

uint64_t dw_pointer(struct dw_cursor *c, uint8_t encoding, uint64_t here, bool is64)
{
	uint64_t v = dw_value(c, encoding, is64);

	if ((encoding & PE_RELATIVE) == PE_PCREL)
		v += here;
	else if (encoding & PE_RELATIVE)
		c->bad = true;
	if (encoding & PE_INDIRECT)
		c->bad = true;
	return is64 ? v : (uint32_t)v;
}
