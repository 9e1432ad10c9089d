// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Clients that hear of domains: each once, whenever they come. */

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include <linux/kofi/provider.h>

#include <kunit/test.h>

#define CL_NAMES	4

/* A client, and how many it believes there are of each domain */
struct cl_client {
	struct kofi_client	client;
	int			there[CL_NAMES];
	unsigned int		calls;
	bool			wrong;
};

static const char *const cl_names[CL_NAMES] = { "one", "two", "three", "four" };

static void cl_count(struct kofi_client *client, const struct kofi_domain_id *id,
		     int step)
{
	struct cl_client *c = container_of(client, struct cl_client, client);
	int i;

	if (strcmp(id->prov_name, "cl_test"))
		return;
	for (i = 0; i < CL_NAMES; i++)
		if (!strcmp(id->name, cl_names[i]))
			break;
	if (i == CL_NAMES) {
		c->wrong = true;
		return;
	}
	c->calls++;
	c->there[i] += step;
	/* there once, or not at all */
	if (c->there[i] != max(step, 0))
		c->wrong = true;
}

static void cl_add(struct kofi_client *client, const struct kofi_domain_id *id)
{
	cl_count(client, id, 1);
}

static void cl_remove(struct kofi_client *client,
		      const struct kofi_domain_id *id)
{
	cl_count(client, id, -1);
}

static void cl_change(struct kofi_client *client, const struct kofi_domain_id *id)
{
}

/* Discovery that is held, once: from the call until the test lets it go on */
static struct {
	atomic_t		next;
	bool			late;	/* the test did not */
	struct completion	held;
	struct completion	go;
} cl_hold;

static int cl_getinfo(u32 version, const char *node, const char *service,
		      u64 flags, const struct fi_info *hints,
		      struct fi_info **info)
{
	if (atomic_cmpxchg(&cl_hold.next, 1, 0)) {
		complete(&cl_hold.held);
		cl_hold.late = !wait_for_completion_timeout(&cl_hold.go, 60 * HZ);
	}
	return -ENODATA;
}

static int cl_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		     void *context)
{
	return -ENOSYS;
}

static struct kofi_provider cl_provider = {
	.name		= "cl_test",
	.version	= FI_VERSION(1, 0),
	.getinfo	= cl_getinfo,
	.fabric		= cl_fabric,
	.owner		= THIS_MODULE,
	.priority	= 100,
};

static int cl_provider_register(void)
{
	return kofi_provider_register(FI_VERSION(FI_MAJOR_VERSION,
						 FI_MINOR_VERSION),
				      &cl_provider);
}

static struct cl_client *cl_new(struct kunit *test)
{
	struct cl_client *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->client.name = "test";
	c->client.add = cl_add;
	c->client.remove = cl_remove;
	return c;
}

static int cl_there(const struct cl_client *c)
{
	int i, sum = 0;

	for (i = 0; i < CL_NAMES; i++)
		sum += c->there[i];
	return sum;
}

static void client_test(struct kunit *test)
{
	struct cl_client *early = cl_new(test), *late = cl_new(test);
	struct kofi_client bad = { .name = "bad", .add = cl_add };
	/* addresses are a network namespace's */
	struct kofi_client nowhere = {
		.name = "nowhere", .add = cl_add, .remove = cl_remove,
		.change = cl_remove,
	};

	KUNIT_EXPECT_EQ(test, kofi_client_register(NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_client_register(&bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_client_register(&nowhere), -EINVAL);
	KUNIT_ASSERT_EQ(test, kofi_client_register(&early->client), 0);

	/* a device counts once its provider does */
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, NULL, "one"), 0);
	KUNIT_EXPECT_EQ(test, cl_there(early), 0);
	KUNIT_ASSERT_EQ(test, cl_provider_register(), 0);
	KUNIT_EXPECT_EQ(test, early->there[0], 1);
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, NULL, "two"), 0);
	KUNIT_EXPECT_EQ(test, early->there[1], 1);
	/* and only once */
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, NULL, "two"),
			-EEXIST);
	KUNIT_EXPECT_EQ(test, early->there[1], 1);

	/* who comes later is told of what there is */
	KUNIT_ASSERT_EQ(test, kofi_client_register(&late->client), 0);
	KUNIT_EXPECT_EQ(test, cl_there(late), 2);
	kofi_device_remove(&cl_provider, NULL, "one");
	KUNIT_EXPECT_EQ(test, early->there[0], 0);
	KUNIT_EXPECT_EQ(test, late->there[0], 0);
	kofi_device_remove(&cl_provider, NULL, "one");
	kofi_device_remove(&cl_provider, NULL, "never");

	/* who leaves has nothing left, and hears nothing more */
	kofi_client_unregister(&late->client);
	KUNIT_EXPECT_EQ(test, cl_there(late), 0);
	KUNIT_EXPECT_EQ(test, late->calls, 4);
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, NULL, "three"), 0);
	KUNIT_EXPECT_EQ(test, late->calls, 4);

	/* with the provider, its devices go */
	kofi_provider_deregister(&cl_provider);
	KUNIT_EXPECT_EQ(test, cl_there(early), 0);
	kofi_device_remove(&cl_provider, NULL, "two");
	kofi_device_remove(&cl_provider, NULL, "three");
	kofi_client_unregister(&early->client);
	KUNIT_EXPECT_EQ(test, early->calls, 6);
	KUNIT_EXPECT_FALSE(test, early->wrong);
	KUNIT_EXPECT_FALSE(test, late->wrong);
}

static void client_netns_test(struct kunit *test)
{
	/* never followed */
	struct net *other = (struct net *)test;
	struct cl_client *c = cl_new(test);

	c->client.net = &init_net;
	KUNIT_ASSERT_EQ(test, cl_provider_register(), 0);
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, &init_net, "one"),
			0);
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, other, "two"), 0);
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, NULL, "three"), 0);
	KUNIT_ASSERT_EQ(test, kofi_client_register(&c->client), 0);
	KUNIT_EXPECT_EQ(test, c->there[0], 1);
	KUNIT_EXPECT_EQ(test, c->there[1], 0);
	KUNIT_EXPECT_EQ(test, c->there[2], 1);
	/* the same name in another namespace is another device */
	KUNIT_EXPECT_EQ(test, kofi_device_add(&cl_provider, other, "one"), 0);
	kofi_device_remove(&cl_provider, other, "one");
	KUNIT_EXPECT_EQ(test, c->there[0], 1);
	kofi_client_unregister(&c->client);
	KUNIT_EXPECT_EQ(test, cl_there(c), 0);
	KUNIT_EXPECT_EQ(test, c->calls, 4);
	KUNIT_EXPECT_FALSE(test, c->wrong);
	kofi_device_remove(&cl_provider, &init_net, "one");
	kofi_device_remove(&cl_provider, other, "two");
	kofi_device_remove(&cl_provider, NULL, "three");
	kofi_provider_deregister(&cl_provider);
}

/* Devices come and go in another thread, for as long as clients do here. */
static int cl_churn(void *arg)
{
	unsigned int *rounds = arg;
	int i;

	while (!kthread_should_stop()) {
		for (i = 0; i < CL_NAMES; i++)
			kofi_device_add(&cl_provider, NULL, cl_names[i]);
		cond_resched();
		for (i = CL_NAMES - 1; i >= 0; i--) {
			kofi_device_remove(&cl_provider, NULL, cl_names[i]);
			cond_resched();
		}
		WRITE_ONCE(*rounds, *rounds + 1);
	}
	return 0;
}

static void client_race_test(struct kunit *test)
{
	struct cl_client *c = cl_new(test);
	struct task_struct *task;
	unsigned int rounds = 0;
	unsigned long heard = 0;

	KUNIT_ASSERT_EQ(test, cl_provider_register(), 0);
	task = kthread_run(cl_churn, &rounds, "churn");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (READ_ONCE(rounds) < 2000 || heard < 1000) {
		c->calls = 0;
		KUNIT_ASSERT_EQ(test, kofi_client_register(&c->client), 0);
		cond_resched();
		kofi_client_unregister(&c->client);
		heard += c->calls;
		KUNIT_ASSERT_EQ(test, cl_there(c), 0);
		KUNIT_ASSERT_FALSE(test, c->wrong);
		cond_resched();
	}
	kthread_stop(task);
	kofi_provider_deregister(&cl_provider);
}

static int cl_register(void *arg)
{
	struct cl_client *c = arg;

	return kofi_client_register(&c->client);
}

/* While a provider is asked what a client is to be notified of, others discover. */
static void client_discovers_test(struct kunit *test)
{
	struct cl_client *c = cl_new(test);
	struct task_struct *task;
	struct fi_info *info;

	c->client.net = &init_net;
	c->client.change = cl_change;
	init_completion(&cl_hold.held);
	init_completion(&cl_hold.go);
	KUNIT_ASSERT_EQ(test, cl_provider_register(), 0);
	task = kthread_create(cl_register, c, "register");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	atomic_set(&cl_hold.next, 1);
	wake_up_process(task);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&cl_hold.held, 60 * HZ));
	info = NULL;
	kofi_getinfo(&init_net, FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), NULL, NULL,
		     0, NULL, &info, GFP_KERNEL);
	fi_freeinfo(info);
	complete(&cl_hold.go);
	KUNIT_EXPECT_EQ(test, kthread_stop_put(task), 0);
	KUNIT_EXPECT_FALSE(test, cl_hold.late);
	kofi_client_unregister(&c->client);
	kofi_provider_deregister(&cl_provider);
}

static struct kunit_case client_cases[] = {
	KUNIT_CASE(client_test),
	KUNIT_CASE(client_netns_test),
	KUNIT_CASE(client_race_test),
	KUNIT_CASE(client_discovers_test),
	{}
};

static struct kunit_suite client_suite = {
	.name = "kofi_client",
	.test_cases = client_cases,
};

kunit_test_suite(client_suite);
