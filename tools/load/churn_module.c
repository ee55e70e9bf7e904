// SPDX-License-Identifier: Apache-2.0
// A library of which churn loads many copies: a frame of its own between churn and its reads.

void module_call(void (*function)(void *), void *context);

__attribute__((visibility("default"), noinline)) void module_call(void (*function)(void *), void *context)
{
	function(context);
	__asm__ volatile(""); // no tail call
}
