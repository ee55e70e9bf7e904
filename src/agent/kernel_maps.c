// SPDX-License-Identifier: Apache-2.0
// Reading the counters of the programs: per-CPU arrays summed up, slots named.
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/recorder_internal.h"
#include "common/clock.h"
#include "common/text.h"

static uint16_t disk_index(struct recorder *r, const char *name, uint32_t dev)
{
	for (unsigned i = 0; i < r->n_disks; i++) {
		if (strcmp(r->disks[i], name))
			continue;
		r->disk_devs[i] = dev; // a disk that came back may have another number
		return (uint16_t)i;
	}
	if (r->n_disks == AGGREGATE_DISKS - 1) {
		strcpy(r->disks[AGGREGATE_DISKS - 1], "[other devices]");
		return AGGREGATE_DISKS - 1;
	}
	strcpy(r->disks[r->n_disks], name);
	r->disk_devs[r->n_disks] = dev;
	return (uint16_t)r->n_disks++;
}

uint16_t kernel_maps_disk(struct recorder *r, uint32_t slot)
{
	struct slot_info info;
	char name[32];

	if (slot >= RECORD_SLOTS)
		return AGGREGATE_DISKS - 1;
	if (r->slot_disk[slot] != AGGREGATE_NO_DISK)
		return r->slot_disk[slot];
	if (slot == RECORD_SLOTS - 1 ||
	    bpf_map_lookup_elem(bpf_map__fd(probes_map(r->probes, "slot_owners")), &slot, &info)) {
		strcpy(r->disks[AGGREGATE_DISKS - 1], "[other devices]");
		return AGGREGATE_DISKS - 1;
	}
	text_sanitize(name, sizeof(name), info.name, sizeof(info.name));
	r->slot_disk[slot] = disk_index(r, *name ? name : "[unnamed device]", info.disk);
	return r->slot_disk[slot];
}

const char *recorder_slot_disk(struct recorder *r, uint32_t slot, uint32_t *ret_dev)
{
	uint16_t disk = kernel_maps_disk(r, slot);

	*ret_dev = r->disk_devs[disk];
	return r->disks[disk];
}

// One value of a per-CPU map for every possible CPU; owned by the caller.
static void *per_cpu(struct recorder *r, const char *map, uint32_t key, size_t size, int *ret_cpus)
{
	int n = libbpf_num_possible_cpus();
	void *values;

	if (n < 1)
		return NULL;
	values = calloc((size_t)n, size);
	if (!values)
		return NULL;
	if (bpf_map_lookup_elem(bpf_map__fd(probes_map(r->probes, map)), &key, values)) {
		free(values);
		return NULL;
	}
	*ret_cpus = n;
	return values;
}

int kernel_maps_totals(struct recorder *r)
{
	struct cpu_state sum = { 0 }, *cpus;
	int n;

	cpus = per_cpu(r, "cpus", 0, sizeof(*cpus), &n);
	if (!cpus)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		sum.own_ops += cpus[i].own_ops;
		sum.second_level_ops += cpus[i].second_level_ops;
		sum.filtered_ops += cpus[i].filtered_ops;
		sum.samples += cpus[i].samples;
		sum.in += cpus[i].in;
		sum.out += cpus[i].out;
		for (unsigned c = 0; c < LOSS_KERNEL; c++)
			sum.losses[c] += cpus[i].losses[c];
		for (unsigned why = 0; why < UNWIND_BREAKS; why++)
			sum.broken[why] += cpus[i].broken[why];
		sum.tables_pending += cpus[i].tables_pending;
		sum.submitters_unknown += cpus[i].submitters_unknown;
	}
	free(cpus);
	r->kernel = sum;
	return 0;
}

// --rate is for a CPU, the programs' target for a stratum: where a CPU has several busy ones, the target is lowered until
// its busiest CPU takes about the rate, and raised again when there is room. It changes between ticks, so no bias comes in.
void kernel_maps_steer(struct recorder *r, uint64_t now)
{
	struct record_state *state = probes_state(r->probes);
	uint32_t usual = probes_target(r->probes), target = state->target;
	double elapsed = (double)(now - r->steered) / 1e9, most = 0, rate;
	struct cpu_state *cpus;
	int n;

	if (!usual || elapsed < 1)
		return;
	cpus = per_cpu(r, "cpus", 0, sizeof(*cpus), &n);
	if (!cpus)
		return;
	for (int i = 0; i < n; i++) {
		uint64_t had = i < RECORD_STEER_CPUS ? r->steer_samples[i] : 0;

		if (i >= RECORD_STEER_CPUS)
			break;
		rate = (double)(cpus[i].samples - had) / elapsed;
		r->steer_samples[i] = cpus[i].samples;
		if (rate > most)
			most = rate;
	}
	free(cpus);
	if (r->steered && most > 1.25 * r->options.rate && target > 1)
		target--;
	else if (most < 0.75 * r->options.rate && target < usual)
		target++;
	r->steered = now;
	__atomic_store_n(&state->target, target, __ATOMIC_RELAXED);
}

static int sum_slot(struct recorder *r, uint32_t slot, struct op_counter sum[2][OP_CLASSES])
{
	struct slot_counters *values;
	int n;

	values = per_cpu(r, "counters", slot, sizeof(*values), &n);
	if (!values)
		return -ENOMEM;
	memset(sum, 0, 2 * OP_CLASSES * sizeof(sum[0][0]));
	for (int cpu = 0; cpu < n; cpu++)
		for (unsigned bank = 0; bank < 2; bank++)
			for (unsigned op = 0; op < OP_CLASSES; op++) {
				sum[bank][op].ops += values[cpu].exact[bank][op].ops;
				sum[bank][op].bytes += values[cpu].exact[bank][op].bytes;
			}
	free(values);
	return 0;
}

// Slots that have an owner, and the one for the rest.
static bool slot_used(struct recorder *r, uint32_t slot)
{
	struct slot_info info;

	return slot == RECORD_SLOTS - 1 || r->slot_disk[slot] != AGGREGATE_NO_DISK ||
	       !bpf_map_lookup_elem(bpf_map__fd(probes_map(r->probes, "slot_owners")), &slot, &info);
}

static int slot_counters(struct recorder *r, uint32_t slot, unsigned bank, struct rows *rows)
{
	struct op_counter sum[2][OP_CLASSES], *had = r->counted[bank][slot];

	if (sum_slot(r, slot, sum))
		return -ENOMEM;
	for (unsigned op = 0; op < OP_CLASSES; op++) {
		if (sum[bank][op].ops == had[op].ops)
			continue;
		rows_exact(rows, kernel_maps_disk(r, slot), (uint8_t)op, sum[bank][op].ops - had[op].ops,
			   sum[bank][op].bytes - had[op].bytes);
		had[op] = sum[bank][op];
	}
	return 0;
}

int kernel_maps_counters(struct recorder *r, uint32_t window, struct rows *rows)
{
	int err = 0;

	for (uint32_t slot = 0; !err && slot < RECORD_SLOTS; slot++)
		if (slot_used(r, slot))
			err = slot_counters(r, slot, window & 1, rows);
	return err;
}

// sysfs has '!' where the kernel has '/'.
static void sysfs_name(const struct slot_info *info, char *out, size_t cap)
{
	text_sanitize(out, cap, info->name, sizeof(info->name));
	for (; (out = strchr(out, '/')); out++)
		*out = '!';
}

static int end_entry(struct recorder *r, uint64_t address, const struct in_flight *e, void *context)
{
	const uint32_t *slot = context;

	if (e->slot == *slot && in_flight_take_out(r, address, e))
		r->losses[LOSS_NEVER_COMPLETED]++;
	return 0;
}

// Another disk has the number now: what was counted is the old one's, what it has in flight does not come back.
static int slot_rename(struct recorder *r, uint32_t slot, struct slot_info *info, const char *name)
{
	int err = slot_counters(r, slot, probes_state(r->probes)->window & 1, aggregate_current(r->aggregate));

	if (!err)
		err = in_flight_each(r, end_entry, &slot);
	memset(info->name, 0, sizeof(info->name));
	memcpy(info->name, name, strnlen(name, sizeof(info->name) - 1));
	bpf_map_update_elem(bpf_map__fd(probes_map(r->probes, "slot_owners")), &slot, info, BPF_EXIST);
	r->slot_disk[slot] = AGGREGATE_NO_DISK;
	return err;
}

int kernel_maps_renamed(struct recorder *r)
{
	int owners = bpf_map__fd(probes_map(r->probes, "slot_owners")), err = 0;
	const struct device *d;
	struct slot_info info;
	char name[32];

	for (uint32_t slot = 0; !err && slot < RECORD_SLOTS - 1; slot++) {
		if (bpf_map_lookup_elem(owners, &slot, &info))
			continue;
		d = devices_find(r->devices, info.disk);
		sysfs_name(&info, name, sizeof(name));
		if (d && d->disk == d->dev && *name && strcmp(d->name, name))
			err = slot_rename(r, slot, &info, d->name);
	}
	return err;
}

void kernel_maps_lower(struct recorder *r)
{
	int lower = bpf_map__fd(probes_map(r->probes, "lower_devices"));
	int owners = bpf_map__fd(probes_map(r->probes, "slot_owners"));
	struct record_state *state = probes_state(r->probes);
	struct slot_info info;
	uint8_t one = 1;

	for (unsigned i = 0; i < devices_count(r->devices); i++) {
		const struct device *d = devices_get(r->devices, i);

		if (d->has_holders)
			bpf_map_update_elem(lower, &d->dev, &one, BPF_ANY);
		else
			bpf_map_delete_elem(lower, &d->dev);
	}
	for (uint32_t slot = 0; slot < RECORD_SLOTS - 1; slot++) {
		if (bpf_map_lookup_elem(owners, &slot, &info))
			continue;
		if (bpf_map_lookup_elem(lower, &info.dev, &one))
			__atomic_fetch_and(&state->slot_flags[slot], (uint8_t)~SLOT_LOWER, __ATOMIC_SEQ_CST);
		else
			__atomic_fetch_or(&state->slot_flags[slot], SLOT_LOWER, __ATOMIC_SEQ_CST);
	}
}

void recorder_get_totals(struct recorder *r, struct recorder_totals *ret)
{
	struct op_counter sum[2][OP_CLASSES];

	memset(ret, 0, sizeof(*ret));
	if (!r->probes || kernel_maps_totals(r))
		return;
	for (uint32_t slot = 0; slot < RECORD_SLOTS; slot++) {
		if (!slot_used(r, slot) || sum_slot(r, slot, sum))
			continue;
		for (unsigned op = 0; op < OP_CLASSES; op++) {
			ret->ops[op] += sum[0][op].ops + sum[1][op].ops;
			ret->bytes[op] += sum[0][op].bytes + sum[1][op].bytes;
		}
	}
	ret->own_ops = r->kernel.own_ops;
	ret->second_level_ops = r->kernel.second_level_ops;
	ret->filtered_ops = r->kernel.filtered_ops;
	ret->samples = r->kernel.samples;
	ret->duration_ns = (r->stop ? r->stop : clock_monotonic()) - r->start;
	ret->time_ns = r->last ? window_get_info(r->last)->time_ns : 0;
}
