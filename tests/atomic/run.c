// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The run, of both sides: what is opened, messages, operations and who does what
 * when. All of it waits in the completion queue, which is what makes libfabric's
 * providers look at what their peers do.
 */
#include "atomic.h"

#define AT_WAIT		1000	/* milliseconds */
#define AT_TRIES	120	/* of these; nothing that works takes as long */
#define AT_SEED		2463534242U
#define AT_SUMS		2000	/* operations of each side at the same time */
#define AT_WORDS	32	/* 64-bit words that these are about */

/* ----------------------------------------------------------------- objects */

static int at_find(struct at_run *r)
{
	struct fi_info *hints = fi_allocinfo();
	char port[8];
	int ret;

	if (!hints)
		return at_fault(-ENOMEM, "fi_allocinfo");
	snprintf(port, sizeof(port), "%u", r->opts.port);
	hints->caps = FI_MSG | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	if (r->opts.server && r->opts.contexts) {
		hints->ep_attr->tx_ctx_cnt = r->opts.contexts;
		hints->ep_attr->rx_ctx_cnt = r->opts.contexts;
	}
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED;
	hints->fabric_attr->prov_name = at_strdup(r->opts.prov);
	ret = fi_getinfo(FI_VERSION(1, 17), r->opts.node, port,
			 r->opts.server ? FI_SOURCE : 0, hints, &r->info);
	fi_freeinfo(hints);
	return at_fault(ret, "fi_getinfo, %s, port %s", r->opts.node, port);
}

/* One endpoint, ordinary or a context of a scalable one, bound to all it needs */
static int at_bind(struct at_run *r, struct fid_ep *ep)
{
	int ret = fi_ep_bind(ep, &r->cq->fid, FI_TRANSMIT | FI_RECV);

	return ret ? ret : r->own.sep ? 0 : fi_ep_bind(ep, &r->av->fid, 0);
}

static int at_open_contexts(struct at_run *r)
{
	struct fid_ep *tx;
	unsigned int i;
	int ret;

	ret = fi_scalable_ep(r->domain, r->info, &r->own.sep, r);
	if (!ret)
		ret = fi_scalable_ep_bind(r->own.sep, &r->av->fid, 0);
	for (i = 0; i < r->opts.contexts && !ret; i++) {
		ret = fi_tx_context(r->own.sep, i, NULL, &tx, r);
		if (ret)
			break;
		/* the same endpoint as its other half */
		ret = fi_rx_context(r->own.sep, i, NULL, &r->own.ctx[i], r);
		if (ret)
			fi_close(&tx->fid);
		else
			ret = at_bind(r, tx);
	}
	return at_fault(ret ? ret : fi_enable(r->own.sep),
			"opening a scalable endpoint");
}

static int at_open_ep(struct at_run *r)
{
	int ret = fi_endpoint(r->domain, r->info, &r->ep, r);

	if (!ret)
		ret = at_bind(r, r->ep);
	return at_fault(ret ? ret : fi_enable(r->ep), "opening an endpoint");
}

static int at_open_regions(struct at_run *r)
{
	u64 both = FI_REMOTE_READ | FI_REMOTE_WRITE;
	int ret;

	ret = fi_mr_reg(r->domain, r->region, AT_REGION, both, 0, 0x61746f6d, 0,
			&r->mr, r);
	if (!ret)
		ret = fi_mr_reg(r->domain, r->region, AT_REGION, FI_REMOTE_READ,
				0, 0x72656164, 0, &r->mr_read, r);
	return at_fault(ret, "fi_mr_reg");
}

static int at_open(struct at_run *r)
{
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC,
		.size = 1024,
	};
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret = at_find(r);

	if (ret)
		return ret;
	r->region = at_alloc(AT_REGION);
	r->plan = at_alloc(sizeof(*r->plan));
	r->mine = at_alloc(sizeof(*r->mine));
	r->ops = at_alloc(AT_OPS * sizeof(*r->ops));
	if (!r->region || !r->plan || !r->mine || !r->ops)
		return at_fault(-ENOMEM, "memory");
	ret = fi_fabric(r->info->fabric_attr, &r->fabric, r);
	if (!ret)
		ret = fi_domain(r->fabric, r->info, &r->domain, r);
	if (!ret)
		ret = fi_cq_open(r->domain, &cq, &r->cq, r);
	if (!ret)
		ret = fi_av_open(r->domain, &av, &r->av, r);
	if (ret)
		return at_fault(ret, "opening a domain");
	ret = at_open_regions(r);
	if (ret)
		return ret;
	return r->opts.server && r->opts.contexts ? at_open_contexts(r) :
						    at_open_ep(r);
}

#define AT_CLOSE(object) do {						\
	typeof(object) at_object = (object);				\
	int at_err = at_object ? fi_close(&at_object->fid) : 0;		\
									\
	if (at_err)							\
		ret = at_fault(at_err, "closing " #object);		\
} while (0)

static int at_close(struct at_run *r)
{
	unsigned int i;
	int ret = 0;

	/* a context is closed as often as it has been opened */
	for (i = 0; i < AT_MAX_CONTEXTS; i++) {
		AT_CLOSE(r->own.ctx[i]);
		AT_CLOSE(r->own.ctx[i]);
	}
	if (r->own.sep)
		r->ep = NULL;
	AT_CLOSE(r->own.sep);
	AT_CLOSE(r->ep);
	AT_CLOSE(r->mr);
	AT_CLOSE(r->mr_read);
	AT_CLOSE(r->av);
	AT_CLOSE(r->cq);
	AT_CLOSE(r->domain);
	AT_CLOSE(r->fabric);
	fi_freeinfo(r->info);
	at_free(r->region);
	at_free(r->plan);
	at_free(r->mine);
	at_free(r->ops);
	return ret;
}

/* ------------------------------------------------------------- completions */

/* One completion, or none within a second */
static int at_progress(struct at_run *r)
{
	struct fi_cq_err_entry err = {};
	struct fi_cq_msg_entry entry;
	struct at_post *post;
	ssize_t n;

	n = fi_cq_sread(r->cq, &entry, 1, NULL, AT_WAIT);
	if (n == -FI_EAVAIL) {
		if (fi_cq_readerr(r->cq, &err, 0) != 1)
			return at_fault(-EIO, "fi_cq_readerr");
		post = err.op_context;
		/* libfabric's ofi_rxm has each refusal twice more, of no operation */
		if (!post && !AT_KERNEL)
			return 1;
		if (!post)
			return at_fault(err.err < 0 ? err.err : -err.err,
					"an operation without a context");
		/* libfabric's ofi_rxm has had it with either sign */
		post->err = err.err < 0 ? err.err : -err.err;
		post->busy = false;
		return 1;
	}
	if (n == -FI_EAGAIN || n == -FI_ETIMEDOUT)
		return 0;
	if (n < 0)
		return at_fault(n, "fi_cq_sread");
	post = entry.op_context;
	post->err = 0;
	post->busy = false;
	return 1;
}

static int at_wait(struct at_run *r, struct at_post *post)
{
	int n, tries = AT_TRIES;

	while (post->busy) {
		n = at_progress(r);
		if (n < 0)
			return n;
		if (!n && !--tries)
			return at_fault(-ETIMEDOUT, "waiting for a completion");
	}
	return 0;
}

/* --------------------------------------------------------------- messages */

static int at_listen(struct at_run *r)
{
	r->rx.busy = true;
	return at_fault(fi_recv(r->ep, &r->heard, sizeof(r->heard), NULL,
				FI_ADDR_UNSPEC, &r->rx), "fi_recv");
}

/* The next message of the peer; the one after it may come from then on. */
static int at_hear(struct at_run *r, struct at_msg *m)
{
	int ret = at_wait(r, &r->rx);

	if (!ret)
		ret = at_fault(r->rx.err, "receiving");
	if (ret)
		return ret;
	*m = r->heard;
	if (m->magic != AT_MAGIC)
		return at_fault(-EPROTO, "magic %#x", m->magic);
	/* the last one */
	return m->kind == AT_DONE ? 0 : at_listen(r);
}

static int at_tell(struct at_run *r, const struct at_msg *m)
{
	int n, tries = AT_TRIES;
	ssize_t ret;

	r->said = *m;
	r->said.magic = AT_MAGIC;
	r->tx.busy = true;
	while ((ret = fi_send(r->ep, &r->said, sizeof(r->said), NULL, r->peer,
			      &r->tx)) == -FI_EAGAIN) {
		n = at_progress(r);
		if (n < 0)
			return n;
		if (!n && !--tries)
			break;
	}
	if (!ret)
		ret = at_wait(r, &r->tx);
	return at_fault(ret ? ret : r->tx.err, "sending message %u", m->kind);
}

static int at_ask(struct at_run *r, const struct at_msg *m, struct at_msg *answer)
{
	int ret = at_tell(r, m);

	if (!ret)
		ret = at_hear(r, answer);
	if (!ret && answer->kind != m->kind)
		ret = -EPROTO;
	return at_fault(ret ? ret : -(int)answer->status, "question %u",
			m->kind);
}

/* Who we are, and where our region is */
static int at_hello(struct at_run *r, struct at_msg *m)
{
	size_t len = sizeof(m->name);
	int ret;

	*m = (struct at_msg){
		.kind = AT_HELLO, .kernel = AT_KERNEL,
		.addr = at_base(r->info, r->mr, r->region),
		.key = fi_mr_key(r->mr),
		.addr_read = at_base(r->info, r->mr_read, r->region),
		.key_read = fi_mr_key(r->mr_read),
	};
	ret = fi_getname(&r->ep->fid, m->name, &len);
	m->name_len = len;
	return at_fault(ret, "fi_getname");
}

static int at_insert(struct at_run *r, const void *name)
{
	int n = fi_av_insert(r->av, name, 1, &r->peer, 0, NULL);

	return n == 1 ? 0 : at_fault(n < 0 ? n : -EINVAL, "fi_av_insert");
}

static int at_meet(struct at_run *r)
{
	struct at_msg m;
	int ret;

	ret = at_listen(r);
	if (!ret)
		ret = at_hello(r, &m);
	if (ret)
		return ret;
	if (!r->opts.server)
		return at_ask(r, &m, &r->remote);
	ret = at_hear(r, &r->remote);
	if (!ret && r->remote.kind != AT_HELLO)
		ret = at_fault(-EPROTO, "message %u", r->remote.kind);
	if (!ret)
		ret = at_insert(r, r->remote.name);
	return ret ? ret : at_tell(r, &m);
}

/* -------------------------------------------------------------- operations */

static u64 at_remote(const struct at_run *r, const struct at_step *s, u32 element)
{
	return r->remote.addr + AT_GUARD +
	       (u64)(s->off + element) * (1U << s->type / 2);
}

/* Two pieces of local memory and two of the peer's */
static ssize_t at_post_parts(struct at_run *r, struct at_op *op)
{
	struct at_step *s = &op->step;
	u32 half = s->count / 2, size = 1U << s->type / 2;
	struct fi_ioc in[2] = {
		{ s->in, half }, { s->in + half * size, s->count - half },
	};
	struct fi_ioc cmp[2] = {
		{ s->cmp, half }, { s->cmp + half * size, s->count - half },
	};
	struct fi_ioc old[2] = {
		{ op->old, half }, { op->old + half * size, s->count - half },
	};
	struct fi_rma_ioc mem[2] = {
		{ at_remote(r, s, s->turn), s->count - s->turn, r->remote.key },
		{ at_remote(r, s, 0), s->turn, r->remote.key },
	};
	struct fi_msg_atomic msg = {
		.msg_iov = in, .iov_count = 2, .addr = r->peer, .rma_iov = mem,
		.rma_iov_count = 2, .datatype = s->type, .op = s->op,
		.context = &op->post,
	};
	bool message = s->form == AT_MESSAGE;

	switch (at_call(s->call)) {
	case FI_COMPARE_ATOMIC:
		if (message)
			return fi_compare_atomicmsg(r->ep, &msg, cmp, NULL, 2,
						    old, NULL, 2,
						    FI_COMPLETION);
		return fi_compare_atomicv(r->ep, in, NULL, 2, cmp, NULL, 2, old,
					  NULL, 2, r->peer, mem[1].addr,
					  mem[1].key, s->type, s->op,
					  &op->post);
	case FI_FETCH_ATOMIC:
		if (message)
			return fi_fetch_atomicmsg(r->ep, &msg, old, NULL, 2,
						  FI_COMPLETION);
		return fi_fetch_atomicv(r->ep, in, NULL, 2, old, NULL, 2,
					r->peer, mem[1].addr, mem[1].key,
					s->type, s->op, &op->post);
	default:
		if (message)
			return fi_atomicmsg(r->ep, &msg, FI_COMPLETION);
		return fi_atomicv(r->ep, in, NULL, 2, r->peer, mem[1].addr,
				  mem[1].key, s->type, s->op, &op->post);
	}
}

static ssize_t at_post_at(struct at_run *r, struct at_op *op, u64 addr, u64 key)
{
	struct at_step *s = &op->step;

	switch (at_call(s->call)) {
	case FI_COMPARE_ATOMIC:
		return fi_compare_atomic(r->ep, s->in, s->count, NULL, s->cmp,
					 NULL, op->old, NULL, r->peer, addr,
					 key, s->type, s->op, &op->post);
	case FI_FETCH_ATOMIC:
		return fi_fetch_atomic(r->ep, s->in, s->count, NULL, op->old,
				       NULL, r->peer, addr, key, s->type, s->op,
				       &op->post);
	default:
		if (s->form == AT_INJECTED)
			return fi_inject_atomic(r->ep, s->in, s->count, r->peer,
						addr, key, s->type, s->op);
		return fi_atomic(r->ep, s->in, s->count, NULL, r->peer, addr,
				 key, s->type, s->op, &op->post);
	}
}

/* Posts it; what it has completed is left to at_settle(). */
static int at_post(struct at_run *r, struct at_op *op)
{
	const struct at_step *s = &op->step;
	int n, tries = AT_TRIES;
	ssize_t ret;

	memset(op->old, 0x5a, sizeof(op->old));
	op->post = (struct at_post){ .busy = true };
	for (;;) {
		ret = s->form == AT_VECTOR || s->form == AT_MESSAGE ?
			at_post_parts(r, op) :
			at_post_at(r, op, at_remote(r, s, 0), r->remote.key);
		if (ret != -FI_EAGAIN)
			break;
		n = at_progress(r);
		if (n < 0)
			return n;
		if (!n && !--tries)
			break;
	}
	/* nothing tells of its end */
	if (ret || s->form == AT_INJECTED)
		op->post.busy = false;
	return ret;
}

static int at_explain(int err, const struct at_step *s)
{
	return at_fault(err,
			"datatype %u, call %u, operation %u, form %u, %u elements at %u",
			s->type, s->call, s->op, s->form, s->count, s->off);
}

/* Wait for it, if it is under way; was it what it had to be? */
static int at_settle(struct at_run *r, struct at_op *op)
{
	struct at_step *s = &op->step;
	size_t len = (size_t)s->count << s->type / 2;
	int ret;

	if (!s->count)
		return 0;
	ret = at_wait(r, &op->post);
	if (!ret)
		ret = op->post.err;
	if (!ret && s->call && memcmp(op->old, op->want, len))
		ret = at_fault(-EBADMSG, "other old values");
	if (!ret)
		r->done++;
	else
		at_explain(ret, s);
	s->count = 0;
	return ret;
}

static int at_settle_all(struct at_run *r)
{
	int i, ret = 0, err;

	for (i = 0; i < AT_OPS; i++) {
		err = at_settle(r, &r->ops[i]);
		if (!ret)
			ret = err;
	}
	return ret;
}

/* -------------------------------------------------------------------- lead */

/* All of the datatype's steps, many under way */
static int at_lead_type(struct at_run *r, enum fi_datatype type)
{
	struct at_msg m = { .kind = AT_CHECK, .value = type }, answer;
	unsigned int i = 0;
	struct at_op *op;
	int ret = 0;

	at_plan_type(r->plan, type);
	for (;; i++) {
		op = &r->ops[i % AT_OPS];
		ret = at_settle(r, op);
		if (ret || !at_plan_step(r->plan, &op->step))
			break;
		at_plan_do(r->plan, &op->step, op->want);
		ret = at_post(r, op);
		if (ret) {
			at_explain(ret, &op->step);
			op->step.count = 0;
			break;
		}
	}
	if (!ret)
		ret = at_settle_all(r);
	return ret ? ret : at_ask(r, &m, &answer);
}

/* An operation that has to fail, or to succeed with the memory's values */
struct at_wrong {
	const char	*what;
	u64		key;		/* bits that are changed */
	u64		addr;		/* added */
	bool		read_only;	/* the other region */
	u32		type;
	u32		call;
	u32		op;
	int		post;		/* of a kernel: refused by the call */
	int		kernel;		/* what a kernel answers */
	int		program;	/* and libfabric */
};

#define AT_FAR	(AT_REGION - AT_GUARD - 4)

static const struct at_wrong at_wrong[] = {
	{ "an unknown key", .key = 0x5a5a00, .type = FI_UINT32, .op = FI_SUM,
	  .kernel = -FI_EKEYREJECTED, .program = -EACCES },
	{ "an unknown key, fetching", .key = 0x5a5a00, .type = FI_INT64,
	  .call = 1, .op = FI_BOR, .kernel = -FI_EKEYREJECTED,
	  .program = -EACCES },
	{ "an unknown key, comparing", .key = 0x5a5a00, .type = FI_UINT8,
	  .call = 2, .op = FI_MSWAP, .kernel = -FI_EKEYREJECTED,
	  .program = -EACCES },
	{ "an element beyond the end", .addr = AT_FAR, .type = FI_UINT32,
	  .op = FI_SUM, .kernel = -EACCES, .program = -EACCES },
	{ "an element beyond the end, comparing", .addr = AT_FAR,
	  .type = FI_INT32, .call = 2, .op = FI_CSWAP_NE, .kernel = -EACCES,
	  .program = -EACCES },
	{ "a write without the right", .read_only = true, .type = FI_UINT16,
	  .op = FI_ATOMIC_WRITE, .kernel = -EACCES, .program = -EACCES },
	{ "a sum without the right to write, fetching", .read_only = true,
	  .type = FI_UINT64, .call = 1, .op = FI_SUM, .kernel = -EACCES,
	  .program = -EACCES },
	{ "a read with the right to read", .read_only = true,
	  .type = FI_UINT64, .call = 1, .op = FI_ATOMIC_READ },
	{ "an address that is not aligned", .addr = 2, .type = FI_UINT32,
	  .call = 1, .op = FI_SUM, .post = -EINVAL, .kernel = -EINVAL },
	{ "a datatype kernels do not have", .type = FI_FLOAT,
	  .op = FI_SUM, .post = -EOPNOTSUPP, .kernel = -EOPNOTSUPP },
};

static int at_wrong_one(struct at_run *r, const struct at_wrong *w)
{
	u64 key = w->read_only ? r->remote.key_read : r->remote.key;
	u64 addr = w->read_only ? r->remote.addr_read : r->remote.addr;
	int want = r->remote.kernel ? w->kernel : w->program, ret;
	struct at_op *op = &r->ops[0];

	op->step = (struct at_step){
		.type = w->type, .call = w->call, .op = w->op, .count = 2,
	};
	memset(op->step.in, 0xff, sizeof(op->step.in));
	if (AT_KERNEL && w->post)
		want = w->post;
	op->post = (struct at_post){ .busy = true };
	ret = at_post_at(r, op, addr + AT_GUARD + w->addr, key ^ w->key);
	if (ret)
		op->post.busy = false;
	else
		ret = at_wait(r, &op->post) ? -ETIMEDOUT : op->post.err;
	op->step.count = 0;
	r->refused += !!want;
	if (ret != want)
		return at_fault(-EBADE, "%s ended with %d, not %d", w->what,
				ret, want);
	if (!ret && memcmp(op->old, r->plan->mem + AT_GUARD, 16))
		return at_fault(-EBADMSG, "%s: other values", w->what);
	return 0;
}

/* None of it changes anything, nor ends the connection. */
static int at_lead_wrong(struct at_run *r)
{
	struct at_msg m = { .kind = AT_SAME }, answer;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(at_wrong) && !ret; i++) {
		/* libfabric does what only a kernel finds wrong */
		if (!at_wrong[i].post || AT_KERNEL || r->remote.kernel)
			ret = at_wrong_one(r, &at_wrong[i]);
	}
	return ret ? ret : at_ask(r, &m, &answer);
}

static int at_lead(struct at_run *r)
{
	struct at_msg m = {
		.kind = AT_BEGIN, .value = AT_SEED + r->opts.server,
	};
	enum fi_datatype type;
	struct at_msg answer;
	int ret;

	r->done = 0;
	r->refused = 0;
	at_plan_init(r->plan, m.value);
	ret = at_ask(r, &m, &answer);
	for (type = FI_INT8; type <= FI_UINT64 && !ret; type++)
		ret = at_lead_type(r, type);
	if (!ret)
		ret = at_lead_wrong(r);
	if (ret)
		return ret;
	at_say("%u operations on the memory of a %s, and %u that were refused",
	       r->done, r->remote.kernel ? "kernel" : "program", r->refused);
	m.kind = AT_TURN;
	return at_tell(r, &m);
}

/* ------------------------------------------------------------------ follow */

static int at_compare(struct at_run *r)
{
	size_t i;

	for (i = 0; i < AT_REGION; i++) {
		if (r->region[i] != r->mine->mem[i])
			return at_fault(-EBADMSG, "byte %zu is %#x, not %#x", i,
					r->region[i], r->mine->mem[i]);
	}
	return 0;
}

/* What the steps of a datatype make of our region */
static int at_follow_type(struct at_run *r, enum fi_datatype type)
{
	struct at_op *op = &r->ops[0];

	if (type > FI_UINT64)
		return at_fault(-EPROTO, "datatype %u", type);
	at_plan_type(r->mine, type);
	while (at_plan_step(r->mine, &op->step))
		at_plan_do(r->mine, &op->step, op->old);
	op->step.count = 0;
	return at_compare(r);
}

static int at_follow(struct at_run *r)
{
	struct at_msg m, answer;
	int ret, err;

	for (;;) {
		ret = at_hear(r, &m);
		if (ret)
			return ret;
		err = 0;
		switch (m.kind) {
		case AT_BEGIN:
			at_plan_init(r->mine, m.value);
			memcpy(r->region, r->mine->mem, AT_REGION);
			break;
		case AT_CHECK:
			err = at_follow_type(r, m.value);
			break;
		case AT_SAME:
			err = at_compare(r);
			break;
		case AT_TURN:
			return 0;
		default:
			return at_fault(-EPROTO, "message %u", m.kind);
		}
		answer = (struct at_msg){ .kind = m.kind, .status = -err };
		ret = at_tell(r, &answer);
		if (ret || err)
			return ret ? ret : err;
	}
}

/* ------------------------------------------------------------------ at once */

/*
 * libfabric's ofi_rxm gives the buffer of a request back with the answer, though the
 * device may not have completed its send. If the buffer is that of an answer by then,
 * that completion ends it too early, and the program, which asks and answers at the
 * same time, loses operations. Over TCP the send is complete before the answer comes.
 */
static unsigned int at_sums(const struct at_run *r)
{
	bool programs = !AT_KERNEL || !r->remote.kernel;

	return programs && !strncmp(r->opts.prov, "verbs", 5) ? 0 : AT_SUMS;
}

/* One of the sums of either side: 1, fetched, to a word of the other's region */
static int at_together_one(struct at_run *r, unsigned int i)
{
	struct at_op *op = &r->ops[i % AT_OPS];
	u64 one = 1, want = i / AT_WORDS;
	int ret;

	ret = at_settle(r, op);
	if (ret)
		return ret;
	op->step = (struct at_step){
		.type = FI_UINT64, .call = i & 1, .op = FI_SUM, .count = 1,
		.off = i % AT_WORDS,
	};
	memcpy(op->step.in, &one, sizeof(one));
	memcpy(op->want, &want, sizeof(want));
	ret = at_post(r, op);
	return ret ? at_explain(ret, &op->step) : 0;
}

/* Our words, all of which the other side has added to */
static int at_together_check(const struct at_run *r, unsigned int sums)
{
	unsigned int i;
	u64 word, want;

	for (i = 0; i < AT_WORDS; i++) {
		memcpy(&word, r->region + AT_GUARD + i * sizeof(word),
		       sizeof(word));
		want = sums / AT_WORDS + (i < sums % AT_WORDS);
		if (word != want)
			return at_fault(-EBADMSG, "word %u is %llu, not %llu",
					i, (unsigned long long)word,
					(unsigned long long)want);
	}
	return 0;
}

static int at_together(struct at_run *r)
{
	struct at_msg m = { .kind = AT_BEGIN };
	unsigned int i, sums = at_sums(r);
	int ret;

	memset(r->region, 0, AT_REGION);
	/* when both have heard it both regions are empty */
	ret = at_tell(r, &m);
	if (!ret)
		ret = at_hear(r, &m);
	for (i = 0; i < sums && !ret; i++)
		ret = at_together_one(r, i);
	if (!ret)
		ret = at_settle_all(r);
	m.kind = AT_DONE;
	if (!ret)
		ret = at_tell(r, &m);
	if (!ret)
		ret = at_hear(r, &m);
	if (!ret)
		ret = at_together_check(r, sums);
	if (!ret && sums)
		at_say("%u sums of each side at the same time", sums);
	return ret;
}

/* ------------------------------------------------------------------ the run */

static int at_session(struct at_run *r)
{
	int ret = at_meet(r);

	if (!ret && r->opts.server)
		ret = at_follow(r);
	if (!ret)
		ret = at_lead(r);
	if (!ret && !r->opts.server)
		ret = at_follow(r);
	return ret ? ret : at_together(r);
}

/* The port @i higher than that of the server */
static int at_insert_server(struct at_run *r, unsigned int i)
{
	struct sockaddr_in6 name = {};
	struct sockaddr_in *in = (void *)&name;

	memcpy(&name, r->info->dest_addr, r->info->dest_addrlen);
	/* at the same place in addresses of both families */
	in->sin_port = htons(r->opts.port + i);
	return at_insert(r, &name);
}

/**
 * at_run - meet the other side, and go through all of it
 * @opts: what was asked for
 *
 * Return: 0 or a negative error code; what went wrong has been said.
 */
int at_run(const struct at_opts *opts)
{
	struct at_run *r = at_alloc(sizeof(*r));
	unsigned int i = 0;
	int ret, err;

	if (!r)
		return at_fault(-ENOMEM, "memory");
	r->opts = *opts;
	ret = at_open(r);
	do {
		if (!ret && r->own.sep)
			r->ep = r->own.ctx[i];
		if (!ret && !opts->server)
			ret = at_insert_server(r, i);
		if (!ret)
			ret = at_session(r);
		at_fault(ret, "context %u", i);
	} while (++i < opts->contexts && !ret);
	err = at_close(r);
	at_free(r);
	return ret ? ret : err;
}
