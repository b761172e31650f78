/* SPDX-License-Identifier: ISC */
/* Kills what an ended job left. */
#include "monitor/monitor.h"

#define SPARE_MAX (2 * SLOTS_MAX + 2)

/* Our own children: jobs and those that clean up. */
static size_t
spare_list(const struct monitor *m, pid_t spare[SPARE_MAX])
{
	size_t n = 0, i;

	for (i = 0; i < SLOTS_MAX; i++) {
		if (m->slots[i].state == SLOT_FREE)
			continue;
		if (m->slots[i].pid > 0)
			spare[n++] = m->slots[i].pid;
		if (m->slots[i].cleaner > 0)
			spare[n++] = m->slots[i].cleaner;
	}
	if (m->dispatcher > 0)
		spare[n++] = m->dispatcher;
	if (m->sweeper > 0)
		spare[n++] = m->sweeper;
	return n;
}

/* Kills processes that an ended job left to us; live jobs keep theirs.  A pass
 * over all processes takes milliseconds.  With control groups it is only needed
 * if there is a child that is not ours: no job can leave its groups. */
static bool
kill_strays(const struct monitor *m, const struct slot *slot)
{
	pid_t spare[SPARE_MAX];
	const size_t n = spare_list(m, spare);

	if (cgroup_can_kill() && !slot->adopted && !proc_has_others(spare, n))
		return false;
	return proc_kill_below(spare, n) > 0;
}

/* Whether the account may have processes. All that the job started is in its
 * control groups, so if these are empty, it has none that could still fork. */
static bool
is_doubtful(const struct slot *slot, bool left)
{
	return left || slot->adopted || !cgroup_can_kill() ||
	    !proc_account_is_idle(slot->who.uid);
}

bool
monitor_sweep(const struct monitor *m, const struct slot *slot)
{
	bool left = false;

	if (cgroup_can_kill())
		left = cgroup_kill(slot->id);
	if (slot->kind == ACCOUNT_RANGE && is_doubtful(slot, left))
		left = proc_kill_account(&slot->who) || left;
	return kill_strays(m, slot) || left;
}
