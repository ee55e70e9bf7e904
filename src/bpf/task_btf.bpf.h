/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* bpf_get_current_task_btf since 5.11: what it returns is read as it stands. The verifier sees only the branch that its kernel has.
 * May be dropped with 5.10. */
#ifndef BLKPROF_BPF_TASK_BTF_H
#define BLKPROF_BPF_TASK_BTF_H

#define HAS_TASK_BTF bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)

#endif
