// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of kofi_verbs: how they end, with what was sent before the end;
 * and how they begin, with a peer that is not libfabric's, says wrong things,
 * says nothing, or dies.
 */

#include <linux/net.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/rdma_cm.h>

#include "../../../providers/verbs/verbs.h"
#include "link.h"
#include "raw.h"

#define VC_SENDS	32
#define VC_LEN		8192
#define VC_AREA		56	/* private data of a request with IP addresses */
#define VC_SOON_MS	TEST_LIMIT(2000)	/* what does not wait for the network takes less */
#define VC_RTUS		100	/* more than are sent in a test */
#define VC_PORT		30000U	/* below those that sockets get */
#define VC_ANSWER_MS	TEST_LIMIT(1000)	/* how long one waits for an answer */

static bool vc_iwarp(const struct ct_pair *p)
{
	return p->info->ep_attr->protocol == FI_PROTO_IWARP;
}

static struct ct_pair *vc_unconnected(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .unconnected = true };

	return ct_pair_open(test, &opts);
}

/* ----------------------------------------------------------------- the end */

/* A DIRECT queue has to be polled for that, too. */
static void vc_expect_end(struct ct_pair *p, int side)
{
	u32 event = 0;
	u8 bytes[256];

	KUNIT_EXPECT_TRUE(p->test, ct_wait(p, fi_eq_read(p->side[side].eq,
							 &event, bytes,
							 sizeof(bytes), 0) > 0,
					   CT_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(p->test, event, FI_SHUTDOWN);
}

/* Operations are sent, and complete, before the connection ends. */
static void cm_shutdown_sends(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	struct ct_op *recv[VC_SENDS], *send[VC_SENDS];
	u8 *in = ct_buf(p, VC_SENDS * VC_LEN), *out = ct_buf(p, VC_LEN);
	int i, side;

	ct_pattern(out, VC_LEN, 5);
	for (i = 0; i < VC_SENDS; i++) {
		recv[i] = ct_op(p);
		send[i] = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, recv[i], in + i * VC_LEN,
					      VC_LEN), 0);
	}
	for (i = 0; i < VC_SENDS; i++)
		KUNIT_ASSERT_EQ(test, ct_send(p, 0, send[i], out, VC_LEN), 0);
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	/* it may have ended by now, but in any case it is */
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, ct_op(p), out, 1), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < VC_SENDS; i++) {
		KUNIT_EXPECT_EQ(test, send[i]->wc.err, 0);
		KUNIT_EXPECT_EQ(test, recv[i]->wc.err, 0);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + i * VC_LEN, VC_LEN,
						      5));
	}
	for (side = 0; side < 2; side++) {
		vc_expect_end(p, side);
		ct_expect_no_event(test, p->side[side].eq);
	}
	ct_pair_close(p);
}

/* Those that report nothing are no exception, and are not called failed. */
static void cm_shutdown_silent(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, ct_mode_of(test));
	struct ct_op *recv[VC_SENDS];
	u8 *in = ct_buf(p, VC_SENDS * 64), *out = ct_buf(p, 64);
	int i;

	for (i = 0; i < VC_SENDS; i++) {
		recv[i] = ct_op(p);
		KUNIT_ASSERT_EQ(test, ct_recv(p, 1, recv[i], in + i * 64, 64),
				0);
	}
	for (i = 0; i < VC_SENDS; i++) {
		ct_pattern(out, 64, i);
		KUNIT_ASSERT_EQ(test, ct_inject(p, 0, out, 64), 0);
	}
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	for (i = 0; i < VC_SENDS; i++) {
		KUNIT_EXPECT_EQ(test, recv[i]->wc.err, 0);
		KUNIT_EXPECT_TRUE(test, ct_pattern_ok(in + i * 64, 64, i));
	}
	vc_expect_end(p, 0);
	vc_expect_end(p, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->anonymous), 0);
	ct_pair_close(p);
}

/* A peer that receives nothing holds up the end for a while, but not the close. */
static void cm_shutdown_stalled(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_SOFTIRQ);
	struct ct_op *op = ct_op(p);
	u8 *out = ct_buf(p, VC_LEN);
	unsigned long began;

	ct_need_stalls(p);
	KUNIT_ASSERT_EQ(test, ct_send(p, 0, op, out, VC_LEN), 0);
	KUNIT_EXPECT_EQ(test, fi_shutdown(p->side[0].ep, 0), 0);
	ct_expect_no_event(test, p->side[0].eq);
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_FALSE(test, ct_is_done(op));
	began = jiffies;
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - began), VC_SOON_MS);
	KUNIT_EXPECT_TRUE(test, ct_is_done(op));
	KUNIT_EXPECT_EQ(test, op->wc.err, ECANCELED);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	ct_pair_close(p);
}

/* ------------------------------------------------------- strange requests */

struct vc_area {
	const char	*name;
	u8		len;	/* bytes given to the connection manager */
	u8		first;	/* what the first one says */
	bool		good;	/* as far as libfabric is concerned */
};

static const struct vc_area vc_areas[] = {
	{ "none",		0,		0,		true },
	{ "nothing",		1,		0,		true },
	{ "all-there-is",	VC_AREA,	VC_AREA - 1,	true },
	{ "one-too-many",	VC_AREA,	VC_AREA,	false },
	{ "far-too-many",	VC_AREA,	255,		false },
	{ "text",		8,		'h',		false },
};

static void vc_area_desc(const struct vc_area *area, char *desc)
{
	strscpy(desc, area->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vc_area, vc_areas, vc_area_desc);

static struct rdma_conn_param vc_param(const struct vc_area *area, u8 *bytes)
{
	memset(bytes, 0x5a, VC_AREA);
	bytes[0] = area->first;
	return (struct rdma_conn_param) {
		.private_data = bytes, .private_data_len = area->len,
		.responder_resources = 1, .initiator_depth = 1,
		.flow_control = 1, .retry_count = 6, .rnr_retry_count = 7,
	};
}

static void cm_hostile_request(struct kunit *test)
{
	const struct vc_area *area = test->param_value;
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	struct ct_pair *p = vc_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u8 bytes[VC_AREA];
	const struct rdma_conn_param param = vc_param(area, bytes);
	int ret = vraw_connect(raw, &init_net, &p->addr, &param);

	KUNIT_EXPECT_EQ(test, ret, 0);
	if (!ret && area->good) {
		KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev,
						    CT_TIMEOUT_MS), 0);
		KUNIT_EXPECT_EQ(test, ev->event, FI_CONNREQ);
		KUNIT_EXPECT_EQ(test, ev->len, sizeof(ev->cm) + area->first);
		KUNIT_EXPECT_MEMEQ(test, ev->cm.data, bytes + 1, area->first);
		KUNIT_EXPECT_EQ(test, fi_reject(p->pep, ev->cm.info->handle,
						NULL, 0), 0);
		fi_freeinfo(ev->cm.info);
	}
	if (!ret)
		KUNIT_EXPECT_EQ(test, vraw_wait(raw), RDMA_CM_EVENT_REJECTED);
	ct_expect_no_event(test, p->side[1].eq);
	vraw_close(raw);
	/* and the listener serves those who behave */
	KUNIT_EXPECT_EQ(test, ct_pair_connect(p), 0);
	ct_pair_close(p);
}

/* -------------------------------------------------------- strange answers */

/* A listener for the endpoint of side 0 to ask */
static void vc_ask(struct ct_pair *p, struct vraw *raw)
{
	struct sockaddr_storage addr = p->addr;

	((struct sockaddr_in *)&addr)->sin_port = 0;
	KUNIT_EXPECT_EQ(p->test, vraw_listen(raw, &init_net, &addr), 0);
	KUNIT_EXPECT_EQ(p->test, fi_connect(p->side[0].ep, &addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(p->test, vraw_wait(raw),
			RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void cm_hostile_answer(struct kunit *test)
{
	const struct vc_area *area = test->param_value;
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	struct ct_pair *p = vc_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u8 bytes[VC_AREA];
	const struct rdma_conn_param param = vc_param(area, bytes);
	/* those of IB and RoCE have room for more than a request */
	bool good = area->good || (!vc_iwarp(p) && area->first < 196);
	int ret;

	vc_ask(p, raw);
	KUNIT_EXPECT_EQ(test, raw->len, vc_iwarp(p) ? 1 : VC_AREA);
	KUNIT_EXPECT_EQ(test, raw->data[0], 0);
	KUNIT_EXPECT_EQ(test, vraw_accept(raw, &param), 0);
	ret = ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS);
	if (good) {
		KUNIT_EXPECT_EQ(test, ret, 0);
		KUNIT_EXPECT_EQ(test, ev->event, FI_CONNECTED);
		KUNIT_EXPECT_EQ(test, ev->len, sizeof(ev->cm) + area->first);
		KUNIT_EXPECT_MEMEQ(test, ev->cm.data, bytes + 1,
				   area->len ? min(area->len - 1, area->first) : 0);
	} else {
		KUNIT_EXPECT_EQ(test, ret, 1);
		KUNIT_EXPECT_EQ(test, ev->error.err, EIO);
		ct_expect_no_event(test, p->side[0].eq);
	}
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	vraw_close(raw);
	ct_pair_close(p);
}

static void cm_hostile_reject(struct kunit *test)
{
	const struct vc_area *area = test->param_value;
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	struct ct_pair *p = vc_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	bool good = area->good || (!vc_iwarp(p) && area->first < 148);
	u8 bytes[VC_AREA];

	vc_param(area, bytes);
	vc_ask(p, raw);
	KUNIT_EXPECT_EQ(test, rdma_reject(raw->id, bytes, area->len,
					  IB_CM_REJ_CONSUMER_DEFINED), 0);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS),
			1);
	KUNIT_EXPECT_EQ(test, ev->error.err, ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, ev->error.err_data_size, good ? area->first : 0);
	ct_expect_no_event(test, p->side[0].eq);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	vraw_close(raw);
	ct_pair_close(p);
}

/* ------------------------------------------------------- nothing, or death */

/* No answer comes: one error after the time-out, and a close that is quick. */
static void cm_no_answer(struct kunit *test)
{
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	struct ct_pair *p = vc_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	unsigned int timeout = VC_ANSWER_MS;
	unsigned long began;

	KUNIT_EXPECT_EQ(test, fi_set_val(&p->side[0].ep->fid,
					 KOFI_VAL_CONNECT_TIMEOUT, &timeout),
			0);
	vc_ask(p, raw);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS),
			1);
	KUNIT_EXPECT_EQ(test, ev->error.err, ETIMEDOUT);
	ct_expect_no_event(test, p->side[0].eq);
	began = jiffies;
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - began), VC_SOON_MS);
	/* the domain waits for what is left, which this brings to its end */
	vraw_close(raw);
	ct_pair_close(p);
}

/* Connect to addr in vain; says why. */
static int vc_fail(struct ct_pair *p, struct sockaddr_storage *addr,
		   unsigned int timeout)
{
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct ct_side *s = &p->side[0];

	KUNIT_EXPECT_EQ(p->test, fi_set_val(&s->ep->fid,
					    KOFI_VAL_CONNECT_TIMEOUT, &timeout),
			0);
	KUNIT_EXPECT_EQ(p->test, fi_connect(s->ep, addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(p->test, ct_next_event(s->eq, ev, CT_TIMEOUT_MS), 1);
	return ev->error.err;
}

/* A peer that is asked, and never answers, whatever is meant to carry that */
static void cm_silent_host(struct kunit *test)
{
	struct ct_pair *p = vc_unconnected(test);
	int retries = READ_ONCE(init_net.ipv4.sysctl_tcp_syn_retries);
	struct sockaddr_storage addr = p->addr;
	unsigned int timeout = VC_ANSWER_MS;
	unsigned long began = jiffies;

	/* iWARP waits for TCP: 3 s, then */
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_syn_retries, 1);
	((struct sockaddr_in *)&addr)->sin_addr.s_addr ^= htonl(0x42);
	KUNIT_EXPECT_EQ(test, vc_fail(p, &addr, timeout), ETIMEDOUT);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - began),
			timeout + VC_SOON_MS);
	ct_expect_no_event(test, p->side[0].eq);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - began),
			timeout + 3000 + VC_SOON_MS);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_syn_retries, retries);
	ct_pair_close(p);
}

/*
 * A place there is no way to. TCP says so at once; elsewhere the manager, whose
 * address is bound to an interface, takes it to be at the other end of that.
 */
static void cm_no_route(struct kunit *test)
{
	struct ct_pair *p = vc_unconnected(test);
	struct sockaddr_storage addr = p->addr;

	((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(0xc0000201);
	KUNIT_EXPECT_EQ(test, vc_fail(p, &addr, VC_ANSWER_MS),
			vc_iwarp(p) ? ENETUNREACH : ETIMEDOUT);
	ct_expect_no_event(test, p->side[0].eq);
	ct_pair_close(p);
}

struct vc_late {
	const char	*name;
	bool		accept;
	bool		closed;
};

static const struct vc_late vc_lates[] = {
	{ "reject",		false, false },
	{ "reject-closed",	false, true },
	{ "accept",		true, false },
	{ "accept-closed",	true, true },
};

static void vc_late_desc(const struct vc_late *late, char *desc)
{
	strscpy(desc, late->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vc_late, vc_lates, vc_late_desc);

/* The answer comes when who has asked waits no more. */
static void cm_late_answer(struct kunit *test)
{
	const struct vc_late *late = test->param_value;
	struct ct_pair *p = vc_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct fi_info *info;
	unsigned int timeout = VC_ANSWER_MS;
	int ret;

	KUNIT_EXPECT_EQ(test, fi_set_val(&p->side[0].ep->fid,
					 KOFI_VAL_CONNECT_TIMEOUT, &timeout),
			0);
	KUNIT_EXPECT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	KUNIT_ASSERT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS),
			0);
	info = ev->cm.info;
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[0].eq, ev, CT_TIMEOUT_MS),
			1);
	KUNIT_EXPECT_EQ(test, ev->error.err, ETIMEDOUT);
	if (late->closed)
		KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	if (late->accept) {
		KUNIT_EXPECT_EQ(test, ct_ep_open(p, 1, info), 0);
		ret = fi_accept(p->side[1].ep, NULL, 0);
		/* the request has gone; or this is found out now, and once */
		if (ret) {
			KUNIT_EXPECT_EQ(test, ret, -ECONNRESET);
		} else {
			ret = ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS);
			KUNIT_EXPECT_GE(test, ret, 0);
		}
		if (!ret) {
			KUNIT_EXPECT_EQ(test, ev->event, FI_CONNECTED);
			ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
		}
	} else {
		KUNIT_EXPECT_EQ(test, fi_reject(p->pep, info->handle, "no", 2),
				0);
	}
	fi_freeinfo(info);
	ct_expect_no_event(test, p->side[0].eq);
	ct_expect_no_event(test, p->side[1].eq);
	ct_pair_close(p);
}

/* More requests than the consumer takes are refused at once. */
static void cm_backlog(struct kunit *test)
{
	struct vraw *raw = kunit_kcalloc(test, 3, sizeof(*raw), GFP_KERNEL);
	const struct rdma_conn_param param = {
		.private_data = "", .private_data_len = 1,
		.retry_count = 6, .rnr_retry_count = 7,
	};
	struct ct_pair *p = vc_unconnected(test);
	struct fid_pep *pep = p->pep;
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct sockaddr_storage addr;
	size_t len = sizeof(addr);
	int i, backlog = 2;

	KUNIT_EXPECT_EQ(test, fi_control(&pep->fid, FI_BACKLOG, &backlog),
			-EBUSY);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(p->fabric, p->info, &pep, p), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(pep, &p->side[1].eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(pep), 0);
	KUNIT_EXPECT_EQ(test, fi_getname(&pep->fid, &addr, &len), 0);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, vraw_connect(&raw[i], &init_net, &addr,
						   &param), 0);
	KUNIT_EXPECT_EQ(test, vraw_wait(&raw[2]), RDMA_CM_EVENT_REJECTED);
	for (i = 0; i < backlog; i++) {
		KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev,
						    CT_TIMEOUT_MS), 0);
		KUNIT_EXPECT_EQ(test, ev->event, FI_CONNREQ);
		fi_freeinfo(ev->cm.info);
	}
	ct_expect_no_event(test, p->side[1].eq);
	/* those that wait end with the listener */
	KUNIT_EXPECT_EQ(test, fi_close(&pep->fid), 0);
	for (i = 0; i < backlog; i++)
		KUNIT_EXPECT_EQ(test, vraw_wait(&raw[i]),
				RDMA_CM_EVENT_REJECTED);
	for (i = 0; i < 3; i++)
		vraw_close(&raw[i]);
	ct_pair_close(p);
}

/*
 * The manager chooses a port that a TCP socket has, which an iWARP device cannot bind. Of
 * two ports, the manager does not choose one twice in a row.
 */
static void cm_port_taken(struct kunit *test)
{
	u32 *range = &init_net.ipv4.ip_local_ports.range, old = *range;
	struct ct_pair *p = vc_unconnected(test);
	struct sockaddr_storage any = p->addr, taken = p->addr;
	size_t len = kofi_ip_len((struct sockaddr *)&any);
	struct socket *sock;
	struct fid_pep *pep;
	int i;

	*kofi_ip_port((struct sockaddr *)&any) = 0;
	*kofi_ip_port((struct sockaddr *)&taken) = htons(VC_PORT);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, any.ss_family, SOCK_STREAM,
					       IPPROTO_TCP, &sock), 0);
	KUNIT_EXPECT_EQ(test, kernel_bind(sock, (void *)&taken, len), 0);
	WRITE_ONCE(*range, (VC_PORT + 1) << 16 | VC_PORT);
	for (i = 0; i < 3; i++) {
		const struct sockaddr_storage *at = i < 2 ? &any : &taken;
		int err = i == 2 && vc_iwarp(p) ? -EADDRINUSE : 0;

		KUNIT_EXPECT_EQ(test, fi_passive_ep(p->fabric, p->info, &pep, p), 0);
		KUNIT_EXPECT_EQ(test, fi_pep_bind(pep, &p->side[1].eq->fid, 0), 0);
		KUNIT_EXPECT_EQ(test, fi_setname(&pep->fid, (void *)at, len), 0);
		KUNIT_EXPECT_EQ(test, fi_listen(pep), err);
		KUNIT_EXPECT_EQ(test, fi_close(&pep->fid), 0);
	}
	WRITE_ONCE(*range, old);
	sock_release(sock);
	ct_pair_close(p);
}

/*
 * TCP has one of two ports. An iWARP device that shares the ports of TCP gets the other one
 * for each endpoint, and connects from it.
 */
static void cm_port_reserved(struct kunit *test)
{
	u32 *range = &init_net.ipv4.ip_local_ports.range, old = *range;
	struct ct_pair *p = vc_unconnected(test);
	struct sockaddr_storage taken = p->addr, name;
	struct ct_side *s = &p->side[0];
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct socket *sock;
	size_t len;
	int i;

	*kofi_ip_port((struct sockaddr *)&taken) = htons(VC_PORT);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, taken.ss_family, SOCK_STREAM,
					       IPPROTO_TCP, &sock), 0);
	KUNIT_EXPECT_EQ(test, kernel_bind(sock, (void *)&taken,
					  kofi_ip_len((struct sockaddr *)&taken)), 0);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	WRITE_ONCE(*range, (VC_PORT + 1) << 16 | VC_PORT);
	/* the manager alone would choose each port once */
	for (i = 0; i < 2; i++) {
		len = sizeof(name);
		KUNIT_EXPECT_EQ(test, ct_ep_open(p, 0, p->info), 0);
		KUNIT_EXPECT_EQ(test, fi_enable(s->ep), 0);
		KUNIT_EXPECT_EQ(test, fi_getname(&s->ep->fid, &name, &len), 0);
		if (vc_iwarp(p))
			KUNIT_EXPECT_EQ(test, VC_PORT + 1,
					ntohs(*kofi_ip_port((struct sockaddr *)&name)));
		if (!i)
			KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	}
	KUNIT_EXPECT_EQ(test, fi_connect(s->ep, &p->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS), 0);
	KUNIT_EXPECT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_EXPECT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, s->eq, FI_CONNECTED);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	WRITE_ONCE(*range, old);
	sock_release(sock);
	ct_pair_close(p);
}

/* Reads the peer lets us have, and those it wants, whichever are fewer */
static void cm_depths(struct kunit *test)
{
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	const struct rdma_conn_param param = {
		.private_data = "", .private_data_len = 1,
		.responder_resources = 2, .initiator_depth = 1,
		.retry_count = 6, .rnr_retry_count = 7,
	};
	struct ct_pair *p = vc_unconnected(test);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));

	KUNIT_EXPECT_EQ(test, vraw_connect(raw, &init_net, &p->addr, &param), 0);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS),
			0);
	KUNIT_EXPECT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_EXPECT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, vraw_wait(raw), RDMA_CM_EVENT_ESTABLISHED);
	/* what we answer is seen from the other side, on iWARP as its own */
	KUNIT_EXPECT_EQ(test, raw->depth[vc_iwarp(p)], 2);
	KUNIT_EXPECT_EQ(test, raw->depth[!vc_iwarp(p)], 1);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	vraw_close(raw);
	ct_pair_close(p);
}

/* ------------------------------------------------------------ what gets lost */

static int (*vc_post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad);
static struct ib_device *vc_losing;
static __be16 vc_lost_attr;	/* messages of the manager of this kind */
static atomic_t vc_lose;	/* so many of them */

static bool vc_is_lost(const struct ib_qp *qp, const struct ib_send_wr *wr)
{
	const struct ib_mad_hdr *mad;

	if (qp->qp_type != IB_QPT_GSI || !wr->num_sge)
		return false;
	mad = ib_virt_dma_to_ptr(wr->sg_list[0].addr);
	return mad->mgmt_class == IB_MGMT_CLASS_CM &&
	       mad->attr_id == vc_lost_attr;
}

/* It goes to a queue pair that no device gives out. */
static int vc_losing_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			       const struct ib_send_wr **bad)
{
	struct ib_ud_wr ud;

	if (!vc_is_lost(qp, wr) || atomic_dec_if_positive(&vc_lose) < 0)
		return vc_post_send(qp, wr, bad);
	ud = *ud_wr(wr);
	ud.remote_qpn = 2;
	return vc_post_send(qp, &ud.wr, bad);
}

static void vc_lose_no_more(void *unused)
{
	WRITE_ONCE(vc_losing->ops.post_send, vc_post_send);
	ib_device_put(vc_losing);
}

static void vc_found(struct kunit *test)
{
	kunit_release_action(test, vc_lose_no_more, NULL);
}

/* So many messages of the kind are lost, until vc_found() or the end of the test. */
static void vc_lose_next(struct kunit *test, __be16 attr, int nr)
{
	vc_losing = link_device(ct_device);
	KUNIT_ASSERT_NOT_NULL(test, vc_losing);
	vc_lost_attr = attr;
	atomic_set(&vc_lose, nr);
	vc_post_send = vc_losing->ops.post_send;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, vc_lose_no_more,
							NULL), 0);
	WRITE_ONCE(vc_losing->ops.post_send, vc_losing_post_send);
}

/*
 * The peer hears of the end although what told it was lost, also if the endpoint
 * has been closed since. The manager repeats it every 4 s or 9.
 */
static void cm_lost_end(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	unsigned long began = jiffies;

	if (vc_iwarp(p))
		kunit_skip(test, "TCP tells the peer");
	vc_lose_next(test, CM_DREQ_ATTR_ID, 1);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - began), VC_SOON_MS);
	KUNIT_EXPECT_EQ(test, atomic_read(&vc_lose), 0);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev, 1000), -EAGAIN);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev,
					    3 * CT_TIMEOUT_MS), 0);
	KUNIT_EXPECT_EQ(test, ev->event, FI_SHUTDOWN);
	vc_found(test);
	ct_expect_no_event(test, p->side[1].eq);
	ct_pair_close(p);
}

/* Side 1 accepts, and does not hear that the connection stands until vc_found(). */
static struct ct_pair *vc_half(struct kunit *test, struct ct_op **asked)
{
	const struct ct_opts opts = {
		.mode = CT_SOFTIRQ, .unconnected = true, .write_space = true,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	u8 *buf = ct_buf(p, 64);

	if (vc_iwarp(p))
		kunit_skip(test, "the device has one word for both ends");
	/* it comes again when the answer to the request does, after seconds */
	vc_lose_next(test, CM_RTU_ATTR_ID, VC_RTUS);
	KUNIT_EXPECT_EQ(test, fi_connect(p->side[0].ep, &p->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS),
			0);
	KUNIT_EXPECT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_EXPECT_EQ(test, fi_enable(p->side[1].ep), 0);
	*asked = ct_op(p);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, *asked, buf, 64), 0);
	KUNIT_EXPECT_EQ(test, fi_accept(p->side[1].ep, NULL, 0), 0);
	ct_expect_event(test, p->side[0].eq, FI_CONNECTED);
	KUNIT_EXPECT_LT(test, atomic_read(&vc_lose), VC_RTUS);
	ct_expect_no_event(test, p->side[1].eq);
	return p;
}

/*
 * The first message may be here before what tells of the connection. Who answers it
 * is told to wait, and when that has come again, to try again.
 */
static void cm_early_message(struct kunit *test)
{
	struct ct_op *asked;
	struct ct_pair *p = vc_half(test, &asked);
	struct ct_op *ask = ct_op(p), *answer = ct_op(p), *answered = ct_op(p);
	u8 *buf = ct_buf(p, 3 * 64);

	KUNIT_EXPECT_EQ(test, ct_recv(p, 0, answered, buf, 64), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, ask, buf + 64, 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&asked->done),
					CT_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, answer, buf + 128, 64), -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->side[1].space), 0);
	vc_found(test);
	KUNIT_EXPECT_TRUE(test, ct_wait(p, atomic_read(&p->side[1].space),
					3 * CT_TIMEOUT_MS));
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, answer, buf + 128, 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, answered->wc.err, 0);
	ct_pair_close(p);
}

/*
 * Who accepts and ends the connection before it has heard that it stands refuses it,
 * as the manager sees it. To the peer that is the end of a connection.
 */
static void cm_early_end(struct kunit *test)
{
	struct ct_op *asked;
	struct ct_pair *p = vc_half(test, &asked);

	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	vc_found(test);
	ct_pair_close(p);
}

/* ------------------------------------------------------- what ends connections */

/* A peer of side 1's, which posts no receives */
static void vc_raw_peer(struct ct_pair *p, struct vraw *raw, u8 rnr_retries)
{
	const struct rdma_conn_param param = {
		.private_data = "", .private_data_len = 1,
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 6, .rnr_retry_count = rnr_retries,
	};
	struct ct_event *ev = ct_buf(p, sizeof(*ev));

	KUNIT_ASSERT_EQ(p->test, vraw_connect(raw, &init_net, &p->addr, &param), 0);
	KUNIT_ASSERT_EQ(p->test, ct_next_event(p->side[1].eq, ev,
					       CT_TIMEOUT_MS), 0);
	KUNIT_ASSERT_EQ(p->test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	KUNIT_ASSERT_EQ(p->test, fi_accept(p->side[1].ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(p->test, vraw_wait(raw), RDMA_CM_EVENT_ESTABLISHED);
	ct_expect_event(p->test, p->side[1].eq, FI_CONNECTED);
}

static void vc_expect_status(struct ct_pair *p, const struct ct_op *op, int err,
			     int status)
{
	KUNIT_EXPECT_EQ(p->test, op->wc.err, err);
	KUNIT_EXPECT_EQ(p->test, op->wc.prov_errno, status);
	KUNIT_EXPECT_STREQ(p->test,
			   fi_cq_strerror(p->side[op->side].tx.cq,
					  op->wc.prov_errno, NULL, NULL, 0),
			   ib_wc_status_msg(status));
}

/*
 * A peer that has no receive, and has asked for few retries: the end. That of
 * iWARP is always, and told by the connection alone.
 */
static void cm_no_receive(struct kunit *test)
{
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	struct ct_pair *p = vc_unconnected(test);
	struct ct_op *first = ct_op(p), *second = ct_op(p);
	u8 *buf = ct_buf(p, 64);
	ssize_t late;

	vc_raw_peer(p, raw, 1);
	KUNIT_EXPECT_EQ(test, ct_send(p, 1, first, buf, 64), 0);
	/* of which the connection may have died already */
	late = ct_send(p, 1, second, buf, 64);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	if (!vc_iwarp(p)) {
		vc_expect_status(p, first, FI_ENORX, IB_WC_RNR_RETRY_EXC_ERR);
		if (!late)
			vc_expect_status(p, second, ECANCELED,
					 IB_WC_WR_FLUSH_ERR);
	}
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	vraw_close(raw);
	ct_pair_close(p);
}

static const struct ct_opts vc_rma = {
	.mode = CT_READ, .caps = FI_MSG | FI_RMA,
	.mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
};

static ssize_t vc_write(struct fid_ep *ep, void *context, void *arg)
{
	return fi_write(ep, arg, 64, NULL, 0, 0x1000, 0x12345678, context);
}

/* A key the peer has never given out */
static void cm_wrong_key(struct kunit *test)
{
	struct ct_pair *p = ct_pair_open(test, &vc_rma);
	struct ct_op *op = ct_op(p), *recv = ct_op(p);
	u8 *buf = ct_buf(p, 128);

	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, recv, buf + 64, 64), 0);
	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 0, op, vc_write, buf), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	if (ct_unanswered(op))
		vc_expect_status(p, op, ECANCELED, IB_WC_WR_FLUSH_ERR);
	else if (!vc_iwarp(p))
		vc_expect_status(p, op, EACCES, IB_WC_REM_ACCESS_ERR);
	vc_expect_status(p, recv, ECANCELED, IB_WC_WR_FLUSH_ERR);
	ct_expect_ended(p);
	ct_pair_close(p);
}

/* The device has said that it refuses a key before it tells the peer, as rxe in 7.3 */
static void cm_wrong_key_event(struct kunit *test)
{
	struct ct_pair *p = ct_pair_open(test, &vc_rma);
	struct vrb_ep *ep = vrb_ep(p->side[1].ep);
	struct ib_event event = { .event = IB_EVENT_QP_ACCESS_ERR };
	struct ct_op *op = ct_op(p);

	if (vc_iwarp(p))
		kunit_skip(test, "no answer to wait for");
	event.device = ep->qp->device;
	event.element.qp = ep->qp;
	ep->qp->event_handler(&event, ep->qp->qp_context);
	flush_delayed_work(&ep->work);
	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 0, op, vc_write, ct_buf(p, 64)), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	vc_expect_status(p, op, EACCES, IB_WC_REM_ACCESS_ERR);
	ct_expect_ended(p);
	ct_pair_close(p);
}

/* The manager says that the peer has left, and more may come for so long. */
static void vc_leave(struct vrb_ep *ep, unsigned long time)
{
	struct rdma_cm_event ev = { .event = RDMA_CM_EVENT_DISCONNECTED };
	struct rdma_cm_id *id = ep->cm.id;

	rdma_lock_handler(id);
	preempt_disable();
	id->event_handler(id, &ev);
	WRITE_ONCE(ep->cm.left, jiffies + time);
	preempt_enable();
	rdma_unlock_handler(id);
	flush_delayed_work(&ep->work);
}

/* The manager's message overtakes the device's answer. */
static void cm_wrong_key_left(struct kunit *test)
{
	struct ct_pair *p = ct_pair_open(test, &vc_rma);
	struct ct_op *send = ct_op(p), *op = ct_op(p), *recv = ct_op(p);

	if (p->info->domain_attr->resource_mgmt != FI_RM_ENABLED)
		kunit_skip(test, "a message does not wait for its receive");
	/* the access waits for the message, and this for a receive */
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, send, ct_buf(p, 64), 64), 0);
	KUNIT_EXPECT_EQ(test, ct_post_fn(p, 0, op, vc_write, ct_buf(p, 64)), 0);
	vc_leave(vrb_ep(p->side[0].ep), TEST_LIMIT(10 * HZ));
	KUNIT_EXPECT_EQ(test, fi_send(p->side[0].ep, ct_buf(p, 64), 64, NULL, 0,
				      NULL), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, recv, ct_buf(p, 64), 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, send->wc.err, 0);
	KUNIT_EXPECT_EQ(test, recv->wc.err, 0);
	vc_expect_status(p, op, EACCES, IB_WC_REM_ACCESS_ERR);
	ct_expect_ended(p);
	ct_pair_close(p);
}

/* No answer is on its way. */
static void cm_left(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	struct ct_op *op = ct_op(p);

	if (p->info->domain_attr->resource_mgmt != FI_RM_ENABLED)
		kunit_skip(test, "a message does not wait for its receive");
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, op, ct_buf(p, 64), 64), 0);
	vc_leave(vrb_ep(p->side[0].ep), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	vc_expect_status(p, op, ECANCELED, IB_WC_WR_FLUSH_ERR);
	ct_expect_ended(p);
	ct_pair_close(p);
}

/* A message longer than its receive */
static void cm_too_long(struct kunit *test)
{
	struct ct_pair *p = ct_pair_mode(test, CT_READ);
	struct ct_op *send = ct_op(p), *recv = ct_op(p);
	u8 *buf = ct_buf(p, 128);

	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, recv, buf + 64, 32), 0);
	KUNIT_EXPECT_EQ(test, ct_send(p, 0, send, buf, 64), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	if (ct_unanswered(send))
		vc_expect_status(p, send, ECANCELED, IB_WC_WR_FLUSH_ERR);
	else if (send->wc.prov_errno == IB_WC_REM_OP_ERR)
		vc_expect_status(p, send, EREMOTEIO, IB_WC_REM_OP_ERR);
	else if (!vc_iwarp(p))
		vc_expect_status(p, send, EREMOTEIO, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, recv->wc.err, FI_ETRUNC);
	/* devices call it different names */
	vc_expect_status(p, recv, FI_ETRUNC, recv->wc.prov_errno);
	KUNIT_EXPECT_NE(test, recv->wc.prov_errno, IB_WC_SUCCESS);
	ct_expect_ended(p);
	ct_pair_close(p);
}

static void vc_nothing(struct ib_cq *cq, struct ib_wc *wc)
{
}

/*
 * A write that takes a receive, to who has not agreed to such: its length is not
 * taken for that of a message.
 */
static void cm_unasked(struct kunit *test)
{
	static struct ib_cqe cqe = { .done = vc_nothing };
	const struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &cqe,
			.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
		},
	};
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	struct ct_pair *p = vc_unconnected(test);
	struct ct_op *recv = ct_op(p);

	if (vc_iwarp(p))
		kunit_skip(test, "no immediate data");
	vc_raw_peer(p, raw, 7);
	KUNIT_EXPECT_EQ(test, ct_recv(p, 1, recv, ct_buf(p, 64), 64), 0);
	KUNIT_EXPECT_EQ(test, ib_post_send(raw->id->qp, &wr.wr, NULL), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_all(p));
	KUNIT_EXPECT_EQ(test, recv->wc.err, EPROTO);
	KUNIT_EXPECT_EQ(test, recv->wc.len, 0);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	vraw_close(raw);
	ct_pair_close(p);
}

/* A peer that lets us have no reads: they are refused, and nothing waits. */
static void cm_no_reads(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .unconnected = true,
		.caps = FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ |
			FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		.mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
	};
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	const struct rdma_conn_param param = {
		.private_data = "", .private_data_len = 1,
		.retry_count = 6, .rnr_retry_count = 7,
	};
	struct ct_pair *p = ct_pair_open(test, &opts);
	u8 *buf = ct_buf(p, 64);
	struct ct_op *op = ct_op(p);

	if (vc_iwarp(p))
		kunit_skip(test, "siw does not say what it has agreed to");
	vc_ask(p, raw);
	KUNIT_EXPECT_EQ(test, vraw_accept(raw, &param), 0);
	ct_expect_event(test, p->side[0].eq, FI_CONNECTED);
	KUNIT_EXPECT_EQ(test, fi_read(p->side[0].ep, buf, 64, NULL, 0, 0, 0,
				      op), -EOPNOTSUPP);
	/* what needs nothing of the peer's program goes on */
	op->side = 0;
	atomic_inc(&op->posted);
	KUNIT_EXPECT_EQ(test, fi_write(p->side[0].ep, buf, 0, NULL, 0, 0, 0,
				       op), 0);
	KUNIT_EXPECT_TRUE(test, ct_wait_done(p, op));
	KUNIT_EXPECT_EQ(test, op->wc.err, 0);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 0), 0);
	vraw_close(raw);
	ct_pair_close(p);
}

/* A queue pair fails, and the device says nothing. */
static void vc_break(struct fid_ep *fid)
{
	struct vrb_ep *ep = container_of(fid, struct vrb_ep, base.ep);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
}

/* Its receives are of a shared context, so none of them says it. */
static void cm_shared_breaks(struct kunit *test)
{
	const struct ct_opts opts = { .mode = CT_READ, .srx_size = 8 };
	struct ct_pair *p = ct_pair_open(test, &opts);

	vc_break(p->side[1].ep);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	ct_expect_event(test, p->side[0].eq, FI_SHUTDOWN);
	ct_pair_close(p);
}

/*
 * A connection on which nothing is sent notices, where it was asked to; also if
 * the last thing sent was a silent operation, whose end the device never reports.
 */
struct vc_death {
	const char	*name;
	bool		peer;	/* dies; otherwise the queue pair fails */
	bool		sent;	/* something, before that */
};

static const struct vc_death vc_deaths[] = {
	{ "peer", true, false },
	{ "queue-pair", false, false },
	{ "peer-sent", true, true },
	{ "queue-pair-sent", false, true },
};

static void vc_death_desc(const struct vc_death *death, char *desc)
{
	strscpy(desc, death->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vc_death, vc_deaths, vc_death_desc);

static void cm_idle_notices(struct kunit *test)
{
	const struct ct_opts opts = {
		.mode = CT_READ, .unconnected = true,
		.caps = FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_WRITE,
		.mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
	};
	const struct vc_death *death = test->param_value;
	struct vraw *raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	const struct rdma_conn_param param = {
		.private_data = "", .private_data_len = 1,
		.retry_count = 6, .rnr_retry_count = 7,
	};
	unsigned int idle = 100, silence = VC_ANSWER_MS;
	struct ct_pair *p = ct_pair_open(test, &opts);
	struct ct_event *ev = ct_buf(p, sizeof(*ev));
	struct fid_ep *ep = p->side[0].ep;

	if (vc_iwarp(p)) {
		KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid,
						 KOFI_VAL_KEEPALIVE_IDLE,
						 &idle), -EOPNOTSUPP);
		ct_pair_close(p);
		return;
	}
	KUNIT_EXPECT_EQ(test, vraw_connect(raw, &init_net, &p->addr, &param), 0);
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev, CT_TIMEOUT_MS),
			0);
	KUNIT_EXPECT_EQ(test, ct_ep_open(p, 1, ev->cm.info), 0);
	fi_freeinfo(ev->cm.info);
	ep = p->side[1].ep;
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, KOFI_VAL_KEEPALIVE_IDLE,
					 &idle), 0);
	KUNIT_EXPECT_EQ(test, fi_set_val(&ep->fid, KOFI_VAL_SILENCE_TIMEOUT,
					 &silence), 0);
	KUNIT_EXPECT_EQ(test, fi_accept(ep, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, vraw_wait(raw), RDMA_CM_EVENT_ESTABLISHED);
	ct_expect_event(test, p->side[1].eq, FI_CONNECTED);
	if (death->sent)
		KUNIT_EXPECT_EQ(test, fi_inject_write(ep, ev, 0, 0, 0, 0), 0);
	/* for as long as the peer's device answers, nothing happens */
	KUNIT_EXPECT_EQ(test, ct_next_event(p->side[1].eq, ev, 2 * silence),
			-EAGAIN);
	if (death->peer)
		vraw_die(raw);
	else
		vc_break(ep);
	ct_expect_event(test, p->side[1].eq, FI_SHUTDOWN);
	ct_expect_no_event(test, p->side[1].eq);
	KUNIT_EXPECT_EQ(test, ct_ep_close(p, 1), 0);
	vraw_close(raw);
	ct_pair_close(p);
}

static struct kunit_case verbs_cm_cases[] = {
	KUNIT_CASE_PARAM(cm_shutdown_sends, ct_mode_gen_params),
	KUNIT_CASE_PARAM(cm_shutdown_silent, ct_mode_gen_params),
	KUNIT_CASE(cm_shutdown_stalled),
	KUNIT_CASE_PARAM(cm_hostile_request, vc_area_gen_params),
	KUNIT_CASE_PARAM(cm_hostile_answer, vc_area_gen_params),
	KUNIT_CASE_PARAM(cm_hostile_reject, vc_area_gen_params),
	KUNIT_CASE(cm_no_answer),
	KUNIT_CASE(cm_silent_host),
	KUNIT_CASE(cm_no_route),
	KUNIT_CASE_PARAM(cm_late_answer, vc_late_gen_params),
	KUNIT_CASE(cm_backlog),
	KUNIT_CASE(cm_port_taken),
	KUNIT_CASE(cm_port_reserved),
	KUNIT_CASE(cm_depths),
	KUNIT_CASE(cm_lost_end),
	KUNIT_CASE(cm_early_message),
	KUNIT_CASE(cm_early_end),
	KUNIT_CASE(cm_no_receive),
	KUNIT_CASE(cm_wrong_key),
	KUNIT_CASE(cm_wrong_key_event),
	KUNIT_CASE(cm_wrong_key_left),
	KUNIT_CASE(cm_left),
	KUNIT_CASE(cm_too_long),
	KUNIT_CASE(cm_unasked),
	KUNIT_CASE(cm_no_reads),
	KUNIT_CASE(cm_shared_breaks),
	KUNIT_CASE_PARAM(cm_idle_notices, vc_death_gen_params),
	{}
};

static struct kunit_suite verbs_cm_suite = {
	.name = "verbs_cm",
	.suite_init = lo_suite_init,
	.init = link_test_init,
	.test_cases = verbs_cm_cases,
};

kunit_test_suite(verbs_cm_suite);
