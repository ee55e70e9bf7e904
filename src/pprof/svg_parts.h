// SPDX-License-Identifier: Apache-2.0
// The parts of a flame graph's file that are the same in all of them.
#ifndef BLKPROF_PPROF_SVG_PARTS_H
#define BLKPROF_PPROF_SVG_PARTS_H

extern const char svg_style[], svg_controls[], svg_script[];

#endif
