/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Where the text that a call read or wrote is in its process: in a row, or in many small pieces. Included by
 * request_events.bpf.h. */
#ifndef BLKPROF_BPF_REQUEST_TEXT_H
#define BLKPROF_BPF_REQUEST_TEXT_H

#define PIECE_SMALL 64 /* a first piece in which there may be no whole line */
#define PIECES_MAX 8
#define GATHERED_MAX 1023
#define GATHERED_ROOM 1536 /* an offset of up to 1023 and a piece of up to 511 */

struct call_text {
	u64 at, size;	/* of the first piece */
	u64 vector;	/* of all of them, when there are more than one that are worth it */
	u32 pieces;
};

/* An address, and a length: what struct iovec and the begin of struct user_msghdr's msg_iov are. */
struct text_piece {
	u64 at, size;
};

static __always_inline bool find_vector(struct req_thread *t, u64 *at, u64 *pieces)
{
	struct text_piece vector = { t->arg1, t->arg2 };

	switch (t->action) {
	case ACTION_RECVMSG:
	case ACTION_SENDMSG:
		if (bpf_probe_read_user(&vector, sizeof(vector), (void *)(t->arg1 + 16))) /* msg_iov, msg_iovlen */
			vector.at = 0;
		break;
	case ACTION_READV:
	case ACTION_WRITEV:
	case ACTION_PREADV:
	case ACTION_PWRITEV:
		break;
	default:
		return false;
	}
	*at = vector.at;
	*pieces = vector.size;
	return true;
}

/* text->size comes with what the call moved. */
static __always_inline void find_text(struct req_thread *t, struct call_text *text)
{
	u64 vector = 0, pieces = 0, moved = text->size;
	struct text_piece first = {};

	if (t->action == ACTION_SENDFILE || t->action == ACTION_COPY)
		return;
	text->at = t->arg1;
	if (!find_vector(t, &vector, &pieces))
		return;
	if (!vector || bpf_probe_read_user(&first, sizeof(first), (void *)vector))
		first.at = 0;
	text->at = first.at;
	if (first.size >= moved)
		return;
	text->size = first.size;
	if (first.size >= PIECE_SMALL || pieces < 2)
		return;
	text->vector = vector;
	text->pieces = pieces < PIECES_MAX ? (u32)pieces : PIECES_MAX;
}

/* `out` has GATHERED_ROOM bytes; how many it got. */
static __always_inline u32 gather(u8 *out, u64 vector, u32 pieces, u64 limit)
{
	struct text_piece piece;
	u64 used = 0, size, left;

	for (u32 i = 0; i < PIECES_MAX; i++) {
		if (i >= pieces || used >= limit)
			break;
		if (bpf_probe_read_user(&piece, sizeof(piece), (void *)(vector + i * sizeof(piece))))
			break;
		left = limit - used;
		size = piece.size < left ? piece.size : left;
		size = size < 511 ? size : 511;
		/* Verifiers up to 5.10 forget what was compared, and know what was masked. */
		barrier_var(size);
		size &= 511;
		barrier_var(used);
		used &= GATHERED_MAX;
		if (bpf_probe_read_user(out + used, size, (void *)piece.at)) {
			lose(REQ_LOSS_PAYLOAD);
			break;
		}
		used += size;
		if (size != piece.size)
			break;
	}
	return (u32)used;
}

#endif
