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

static unsigned int mesh_seed;
module_param(mesh_seed, uint, 0444);
MODULE_PARM_DESC(mesh_seed, "run only this seed of the mesh (0: all)");

static unsigned int mesh_runs = 3;
module_param(mesh_runs, uint, 0444);
MODULE_PARM_DESC(mesh_runs, "seeds of the mesh");

#define MESH_ROOM	65536	/* KiB; a debug kernel keeps what is freed, too */

static void rdm_mesh_run(struct kunit *test, unsigned int seed)
{
	const struct mesh_opts opts = {
		.prov = test->param_value,
		.device = rdm_place_device(),
		.hosts = { rdm_place_address() },
		.machines = 1,
		.posts = 400,
		.close_posts = 100,
		.seed = seed,
		.room = MESH_ROOM,
		.limit_ms = TEST_LIMIT(60000),
	};
	struct mesh *m;
	int err;

	m = mesh_open(&opts, &err);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rdm_mesh_close, m),
			0);
	KUNIT_EXPECT_EQ_MSG(test, mesh_run(m), 0, "seed %u: %s", seed, m->why);
	kunit_info(test, "seed %u: %u messages, %u accesses, %u added, %lld KiB in use",
		   seed, m->messages, m->accesses, m->atomics, mesh_used(m));
	kunit_release_action(test, rdm_mesh_close, m);
}

static void rdm_mesh(struct kunit *test)
{
	unsigned int i, first = mesh_seed ?: 1, runs = mesh_seed ? 1 : mesh_runs;

	for (i = first; i < first + runs; i++)
		rdm_mesh_run(test, i);
}

static struct kunit_case rdm_mesh_cases[] = {
	KUNIT_CASE_PARAM_ATTR(rdm_mesh, rdm_place_gen_params, {.speed = KUNIT_SPEED_SLOW}),
	{}
};

static struct kunit_suite rdm_mesh_suite = {
	.name = "rdm_mesh",
	.suite_init = lo_suite_init,
	.test_cases = rdm_mesh_cases,
};

kunit_test_suite(rdm_mesh_suite);
