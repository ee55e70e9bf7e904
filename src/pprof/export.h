// SPDX-License-Identifier: Apache-2.0
// Profiles in the formats of others.
#ifndef BLKPROF_PPROF_EXPORT_H
#define BLKPROF_PPROF_EXPORT_H

#include "pprof/folded.h"
#include "pprof/sink.h"

// "root;…;leaf VALUE" a line: one sample type, in its own unit.
void export_collapsed(const struct folded *f, size_t type, struct sink *s);
// JSON for speedscope.app: every sample type is a profile of its own, `type` the one that is shown first.
void export_speedscope(const struct folded *f, size_t type, const char *title, struct sink *s);

// A flame graph as one SVG file with its own script: searched, zoomed, walked with the keyboard; without a script it is
// a picture. Frames narrower than 1/5000 of the whole are left out, and what lies deeper than SVG_DEPTH_MAX.
#define SVG_DEPTH_MAX 512
struct flame;
// 0, -ENOMEM or -E2BIG.
int flame_new(const struct folded *f, size_t type, struct flame **ret);
void flame_free(struct flame *g);
void export_svg(const struct flame *g, const char *title, struct sink *s);

#endif
