// SPDX-License-Identifier: Apache-2.0
// DWARF's numbers of the registers that a walk needs. Another machine is another set.
#ifndef BLKPROF_UNWIND_REGISTERS_H
#define BLKPROF_UNWIND_REGISTERS_H

#define REG_RBP 6
#define REG_RSP 7
#define REG_RIP 16 // the column of the return address

#endif
