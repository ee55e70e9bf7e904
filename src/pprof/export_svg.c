// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "pprof/flame.h"
#include "pprof/svg_parts.h"
#include "pprof/top_internal.h"

#define ROW 20
#define HEAD 190
#define WIDTH_MIN (1.0 / 5000)

static const char *const class_of[FRAME_KINDS] = { "u", "k", "s" };
static const char *const word_of[FRAME_KINDS] = { "program", "kernel", "no code: a process, a label or a state" };

struct drawing {
	const struct flame *g;
	struct sink *s;
	const char *unit;
	int32_t *number; // of a node among the drawn ones, -1 = not drawn
	size_t drawn;
};

static double width(const struct drawing *d, const struct flame_node *n)
{
	int64_t total = d->g->nodes[0].value;

	return total ? (double)n->value / (double)total : 1;
}

static void put_frame(struct drawing *d, uint32_t index, size_t depth)
{
	const struct flame_node *n = &d->g->nodes[index];
	const struct folded *f = d->g->folded;
	enum frame_kind kind = n->frame ? folded_frame(f, n->frame)->kind : FRAME_SYNTHETIC;
	const char *name = n->frame ? folded_name(f, n->frame) : "all";
	char value[64];

	sink_printf(d->s, "<svg class=\"%s\" x=\"%.4f%%\" y=\"%zu\" width=\"%.4f%%\" height=\"%d\" data-p=\"%d\" data-v=\"%lld\"><title>",
		    class_of[kind], n->x * 100, depth * ROW, width(d, n) * 100, ROW, index ? (int)d->number[n->parent] : -1,
		    (long long)n->value);
	sink_xml(d->s, name);
	sink_printf(d->s, "\n%s, %.2f%% (%s)</title><rect width=\"100%%\" height=\"%d\"/><text x=\"3\" y=\"14\">",
		    top_format(value, sizeof(value), n->value, d->unit), width(d, n) * 100, word_of[kind], ROW - 1);
	sink_xml(d->s, name);
	sink_text(d->s, "</text></svg>\n");
	d->number[index] = (int32_t)d->drawn++;
}

// Depth first without recursion: a node, then its children, from left to right.
static void put_frames(struct drawing *d)
{
	struct {
		uint32_t node, next;
	} path[SVG_DEPTH_MAX + 2];
	const struct flame *g = d->g;
	size_t depth = 0;

	put_frame(d, 0, 0);
	path[0].node = path[0].next = 0;
	while (!d->s->error) {
		const struct flame_node *n = &g->nodes[path[depth].node];
		uint32_t below;

		if (path[depth].next == n->n_children) {
			if (!depth--)
				break;
			continue;
		}
		below = g->order[n->first_child + path[depth].next++];
		if (width(d, &g->nodes[below]) < WIDTH_MIN)
			continue;
		depth++;
		path[depth].node = below;
		path[depth].next = 0;
		put_frame(d, below, depth);
	}
}

// Of what is drawn: a narrow tower must not make the picture tall.
static size_t deepest(const struct flame *g)
{
	size_t most = 0;

	for (uint32_t i = 1; i < g->n; i++) {
		size_t depth = 0;

		if ((double)g->nodes[i].value < WIDTH_MIN * (double)g->nodes[0].value)
			continue;
		for (uint32_t at = i; at; at = g->nodes[at].parent)
			depth++;
		most = depth > most ? depth : most;
	}
	return most;
}

static void put_head(const struct drawing *d, const char *title)
{
	const struct folded *f = d->g->folded;
	const struct profile *p = f->profile;
	char value[64];

	sink_text(d->s, "<foreignObject id=\"head\" x=\"0\" y=\"0\" width=\"100%\" height=\"");
	sink_printf(d->s, "%d\"><div xmlns=\"http://www.w3.org/1999/xhtml\" class=\"head\"><h1>", HEAD);
	sink_xml(d->s, title);
	sink_text(d->s, "</h1><p>");
	sink_xml(d->s, profile_text(p, p->types[d->g->type].type));
	sink_printf(d->s, ", %s in all", top_format(value, sizeof(value), d->g->nodes[0].value, d->unit));
	if (p->duration_ns > 0)
		sink_printf(d->s, ", %s of profile", top_format(value, sizeof(value), p->duration_ns, "nanoseconds"));
	if (d->g->cut)
		sink_printf(d->s, "; deeper than %d frames is not drawn", SVG_DEPTH_MAX);
	sink_text(d->s, svg_controls);
	sink_text(d->s, "</div></foreignObject>\n");
}

void export_svg(const struct flame *g, const char *title, struct sink *s)
{
	const struct profile *p = g->folded->profile;
	struct drawing d = { .g = g, .s = s, .unit = profile_text(p, p->types[g->type].unit) };
	size_t height = HEAD + (deepest(g) + 1) * ROW + 10;

	d.number = calloc(g->n, sizeof(*d.number));
	if (!d.number) {
		s->error = -ENOMEM;
		return;
	}
	sink_printf(s, "<svg id=\"blkprof\" xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" height=\"%zu\">\n<title>", height);
	sink_xml(s, title);
	// Without it a telephone lays the page out 980 pixels wide and shrinks it.
	sink_text(s, "</title>\n<meta xmlns=\"http://www.w3.org/1999/xhtml\" name=\"viewport\" content=\"width=device-width\"/>\n"
		     "<style>");
	sink_text(s, svg_style);
	sink_text(s, "</style>\n<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n");
	put_head(&d, title);
	sink_printf(s, "<svg id=\"frames\" x=\"0\" y=\"%d\" width=\"100%%\">\n", HEAD);
	put_frames(&d);
	sink_text(s, "</svg>\n<script><![CDATA[");
	sink_text(s, svg_script);
	sink_text(s, "]]></script>\n</svg>\n");
	free(d.number);
}
