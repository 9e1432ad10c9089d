// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The mesh of tests/mesh, all of it in one machine, over each provider there is. */
#include "../../mesh/mesh.h"
#include "../kunit.h"
#include "../limit.h"
#include "place.h"

static void rdm_mesh_close(void *arg)
{
	mesh_close(arg);
}

static void rdm_mesh(struct kunit *test)
{
	const struct mesh_opts opts = {
		.prov = test->param_value,
		.device = rdm_place_device(),
		.hosts = { rdm_place_address() },
		.machines = 1,
		.posts = 1200,
		.close_posts = 150,
		.limit_ms = TEST_LIMIT(60000),
	};
	struct mesh *m;
	int err;

	m = mesh_open(&opts, &err);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rdm_mesh_close, m),
			0);
	KUNIT_EXPECT_EQ_MSG(test, mesh_run(m), 0, "%s", m->why);
	kunit_info(test, "%u messages, %u accesses, %u added", m->messages,
		   m->accesses, m->atomics);
}

static struct kunit_case rdm_mesh_cases[] = {
	KUNIT_CASE_PARAM_ATTR(rdm_mesh, rdm_place_gen_params, {.speed = KUNIT_SPEED_SLOW}),
	{}
};

static struct kunit_suite rdm_mesh_suite = {
	.name = "rdm_mesh",
	.test_cases = rdm_mesh_cases,
};

kunit_test_suite(rdm_mesh_suite);
