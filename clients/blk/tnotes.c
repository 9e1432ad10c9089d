// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unsolicited notes to clients: the target is still working on a command, or all writes
 * are on stable storage because the volume is disabled.
 *
 * A note is a write to the client's memory. It takes no receive, and the client need not
 * poll its queue. A work item that does not wait for a device posts it.
 *
 * If a volume has been disabled and flushed, all writes under its incarnation are on
 * stable storage, and remain there: a volume gets another incarnation each time that it
 * is enabled. A list of such incarnations proves to clients that were not connected that
 * nothing has been lost. Even an old list can hide no crash. The administrator may keep
 * it while this module is not loaded.
 */
#include <linux/list.h>

#include "target.h"

/* ------------------------------------------------------------------- progress */

/**
 * kblkt_note_progress - notify a client about commands that take long
 * @c: a connection that serves; called twice a second
 *
 * A command counts if it was there at the last call. While the connection's work item
 * waits for the device, commands that have not been received wait for it, too.
 *
 * Context: process, kblkt_lock held.
 */
void kblkt_note_progress(struct kblkt_conn *c)
{
	unsigned int turn = READ_ONCE(c->notes.turns);
	struct kblkt_notes *n = &c->notes;
	struct kblk_notes note = {};
	u64 tags, slow;
	int err;

	bitmap_to_arr64(&tags, c->tags, KBLK_DEPTH);
	slow = turn & 1 && turn == n->turn ? ~0ULL : tags & n->tags;
	n->tags = tags;
	n->turn = turn;
	/* the last note is to stay */
	if (!n->at.len || !slow || n->told != KBLKT_UNTOLD)
		return;
	note.beat = cpu_to_le64(++n->beat);
	note.tags = cpu_to_le64(slow);
	err = fi_inject_write(c->ep, &note,
			      min_t(u32, sizeof(note), le32_to_cpu(n->at.len)),
			      0, le64_to_cpu(n->at.addr),
			      le64_to_cpu(n->at.key));
	/* without room for it there will be another one */
	if (err && err != -EAGAIN)
		kblkt_lost(c);
}

/* --------------------------------------------------------------------- stable */

static void kblkt_told(struct fid_cq *cq, const struct kofi_wc *wc)
{
	struct kblkt_conn *c = container_of(wc->cqe, struct kblkt_conn,
					    notes.cqe);

	/* a failed write has notified nobody, but the connection is then closed */
	mutex_lock(&kblkt_lock);
	c->notes.told = KBLKT_TOLD;
	mutex_unlock(&kblkt_lock);
	complete(&c->volume->told);
}

static int kblkt_tell(struct kblkt_conn *c)
{
	struct kblkt_notes *n = &c->notes;
	ssize_t err;
	const struct kvec kv = {
		.iov_base = &n->last,
		.iov_len = min_t(u32, sizeof(n->last), le32_to_cpu(n->at.len)),
	};
	const struct fi_rma_iov to = {
		.addr = le64_to_cpu(n->at.addr), .len = kv.iov_len,
		.key = le64_to_cpu(n->at.key),
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &kv, .iov_count = 1, .rma_iov = &to,
		.rma_iov_count = 1, .context = &n->cqe,
	};

	n->cqe.done = kblkt_told;
	n->last = (struct kblk_notes) {
		.beat = cpu_to_le64(++n->beat),
		.stable = cpu_to_le64(c->incarnation),
	};
	err = fi_writemsg(c->ep, &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE);
	/* iWARP reports no arrival: the connection closes behind the note */
	return err == -EOPNOTSUPP ? fi_writemsg(c->ep, &msg, FI_COMPLETION) : err;
}

/* Notify the clients that are not notified; true if the notes of some are outstanding. */
static bool kblkt_untold(const struct kblkt_volume *v, u64 incarnation)
{
	struct kblkt_conn *c;
	bool ret = false;

	mutex_lock(&kblkt_lock);
	list_for_each_entry(c, &kblkt_conns, node) {
		int err = 0;

		if (c->volume != v || c->phase != KBLKT_SERVES ||
		    c->incarnation != incarnation || !c->notes.at.len ||
		    atomic_read(&c->dead) ||
		    c->notes.told == KBLKT_TOLD)
			continue;
		if (c->notes.told == KBLKT_UNTOLD) {
			/* kblkt_told() waits for the lock */
			err = kblkt_tell(c);
			if (!err)
				c->notes.told = KBLKT_TELLS;
		}
		if (!err || err == -EAGAIN)
			ret = true;
	}
	mutex_unlock(&kblkt_lock);
	return ret;
}

/**
 * kblkt_note_stable - notify clients that all their writes are on stable storage
 * @v: a volume that starts no command
 * @incarnation: incarnation of @v for the writes
 *
 * Waits until connected clients know, but not for long.
 *
 * Context: process, may sleep.
 */
void kblkt_note_stable(struct kblkt_volume *v, u64 incarnation)
{
	unsigned long end = jiffies + KBLKT_TELL;
	__le64 list[KBLK_STABLE + 1];
	unsigned int nr;

	nr = kblkt_stable_get(&v->uuid, list + 1);
	list[0] = cpu_to_le64(incarnation);
	if (!nr || list[1] != list[0])
		kblkt_stable_set(&v->uuid, list, min(nr + 1, KBLK_STABLE));
	while (kblkt_untold(v, incarnation) && time_before(jiffies, end))
		wait_for_completion_timeout(&v->told, HZ / 10);
}

/* ------------------------------------------------------------------- the proof */

#define KBLKT_KNOWN	256	/* most volumes with a list of incarnations */

/* Incarnations of a volume of which all is on stable storage, the last one first */
struct kblkt_stable {
	struct list_head	node;
	uuid_t			uuid;
	__le64			list[KBLK_STABLE];
	unsigned int		nr;
};

static LIST_HEAD(kblkt_stables);
static unsigned int kblkt_nr_stables;
static DEFINE_MUTEX(kblkt_stable_lock);

static struct kblkt_stable *kblkt_stable_find(const uuid_t *uuid)
{
	struct kblkt_stable *s;

	list_for_each_entry(s, &kblkt_stables, node)
		if (uuid_equal(&s->uuid, uuid))
			return s;
	return NULL;
}

/**
 * kblkt_stable_get - incarnations of which all is on stable storage
 * @uuid: of the volume
 * @list: room for KBLK_STABLE of them
 *
 * Context: process, may sleep.
 * Return: how many there are.
 */
unsigned int kblkt_stable_get(const uuid_t *uuid, __le64 *list)
{
	const struct kblkt_stable *s;
	unsigned int nr = 0;

	mutex_lock(&kblkt_stable_lock);
	s = kblkt_stable_find(uuid);
	if (s) {
		nr = s->nr;
		memcpy(list, s->list, nr * sizeof(*list));
	}
	mutex_unlock(&kblkt_stable_lock);
	return nr;
}

/**
 * kblkt_stable_set - replace the list of kblkt_stable_get()
 * @uuid: of the volume
 * @list: the incarnations, the last one first
 * @nr: how many; 0: nothing is proven
 *
 * Without memory, or for too many volumes, the oldest proof is forgotten: clients then
 * count writes as lost that may not be.
 *
 * Context: process, may sleep.
 */
void kblkt_stable_set(const uuid_t *uuid, const __le64 *list, unsigned int nr)
{
	struct kblkt_stable *s;

	mutex_lock(&kblkt_stable_lock);
	s = kblkt_stable_find(uuid);
	if (!s && kblkt_nr_stables == KBLKT_KNOWN)
		s = list_last_entry(&kblkt_stables, struct kblkt_stable, node);
	if (s) {
		list_del(&s->node);
		kblkt_nr_stables--;
	} else if (nr) {
		s = kzalloc(sizeof(*s), GFP_KERNEL);
	}
	if (s && nr) {
		s->uuid = *uuid;
		s->nr = nr;
		memcpy(s->list, list, nr * sizeof(*list));
		list_add(&s->node, &kblkt_stables);
		kblkt_nr_stables++;
	} else {
		kfree(s);
	}
	mutex_unlock(&kblkt_stable_lock);
}

/**
 * kblkt_stable_free - forget all of it
 *
 * Context: process, may sleep; there are no volumes.
 */
void kblkt_stable_free(void)
{
	struct kblkt_stable *s, *next;

	list_for_each_entry_safe(s, next, &kblkt_stables, node)
		kfree(s);
}
