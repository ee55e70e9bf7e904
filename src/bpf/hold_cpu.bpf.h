/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Programs that are not preempted. Whoever includes it has a config with hold_cpu: whether the kernel can and has to. */
#ifndef BLKPROF_BPF_HOLD_CPU_H
#define BLKPROF_BPF_HOLD_CPU_H

/* Since 6.10. Kernels that preempt BPF programs skip a program for other tasks while one that runs it on their CPU is
 * preempted: ours must not be. What remains are the moments before the first and behind the second of these. */
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

static __always_inline void hold_cpu(void)
{
	if (config.hold_cpu)
		bpf_preempt_disable();
}

static __always_inline void release_cpu(void)
{
	if (config.hold_cpu)
		bpf_preempt_enable();
}

#endif
