/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work items of kofi_sock's queue that keep their worker, as one that waits for memory */
#ifndef _KOFI_TESTS_SOCK_STUCK_H
#define _KOFI_TESTS_SOCK_STUCK_H

#include <linux/completion.h>
#include <linux/workqueue.h>

/* Not on a stack */
struct stuck {
	struct work_struct	work;
	struct completion	runs;
	struct completion	over;
};

static inline void stuck_work(struct work_struct *work)
{
	struct stuck *s = container_of(work, struct stuck, work);

	complete(&s->runs);
	wait_for_completion(&s->over);
}

/* @cpu: WORK_CPU_UNBOUND for any. s->runs completes when it has a worker. */
static inline void stuck_queue(struct stuck *s, int cpu)
{
	init_completion(&s->runs);
	init_completion(&s->over);
	INIT_WORK(&s->work, stuck_work);
	queue_work_on(cpu, ksk_wq, &s->work);
}

static inline void stuck_end(struct stuck *s)
{
	complete(&s->over);
	flush_work(&s->work);
}

#endif /* _KOFI_TESTS_SOCK_STUCK_H */
