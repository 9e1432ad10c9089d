// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi blk: the network block device and its target, which are set up through
 * configfs. A command makes or removes directories there and writes attributes.
 * The write to the last attribute, "enable", decides about success.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "blk.h"

struct options {
	const char	*name;
	const char	*provider;
	const char	*port;
	const char	*listen;
	const char	*allow;
	const char	*uuid;
	const char	*discard;
	const char	*queues;
	const char	*polled;
	const char	*digest;
	const char	*io_timeout;
	const char	*path_timeout;
	const char	*fast_fail;
	const char	*state;
	const char	*host;
	const char	*identity;
	const char	*key;
	bool		read_only;
	bool		json;
	bool		force;
	bool		exclusive;
	bool		clear;
};

/* ------------------------------------------------------------------- target */

static const char *blk_provider(const struct options *o)
{
	if (!o->provider)
		return "sock";
	return strcmp(o->provider, "tcp") ? o->provider : "sock";
}

/* Ports that this tool makes are named so. */
static void blk_port_name(char *name, const struct options *o)
{
	snprintf(name, TEXT_MAX, "%s-%s-%s", blk_provider(o), o->listen,
		 o->port ?: KBLK_PORT);
}

static bool blk_none(const char *name, const void *arg)
{
	(void)name;
	(void)arg;
	return false;
}

/* Close a port of "export" that has no volume any longer. */
static bool blk_port_unused(const char *name, const void *arg)
{
	char listen[TEXT_MAX], port[TEXT_MAX], provider[TEXT_MAX];
	const struct options o = {
		.listen = blk_get(listen, PORTS, name, "addr"),
		.port = blk_get(port, PORTS, name, "port"),
		.provider = blk_get(provider, PORTS, name, "provider"),
	};
	char own[TEXT_MAX], links[PATH_MAX];

	(void)arg;
	blk_port_name(own, &o);
	if (!strcmp(own, name) && !blk_links(links, name) &&
	    blk_each(links, blk_none, NULL) &&
	    !blk_set(PORTS, name, "enable", "0"))
		blk_rmdir(PORTS, name);
	return true;
}

struct search {
	const struct options	*o;
	char			*name;	/* of the port that was found */
};

/* Continue the search, unless the port is open at the address of --listen. */
static bool blk_port_differs(const char *name, const void *arg)
{
	const struct search *search = arg;
	const struct options *o = search->o;
	char value[TEXT_MAX];

	if (strcmp(blk_get(value, PORTS, name, "enable"), "1") ||
	    strcmp(blk_get(value, PORTS, name, "addr"), o->listen) ||
	    strcmp(blk_get(value, PORTS, name, "port"), o->port ?: KBLK_PORT) ||
	    strcmp(blk_get(value, PORTS, name, "provider"), blk_provider(o)))
		return true;
	snprintf(search->name, TEXT_MAX, "%s", name);
	return false;
}

static int blk_listen(const struct options *o)
{
	char name[TEXT_MAX], enabled[TEXT_MAX];
	const struct search search = { o, name };
	int err;

	/* A port that is open may have another name than this tool gives. */
	err = -EEXIST;
	if (blk_each(PORTS, blk_port_differs, &search)) {
		blk_port_name(name, o);
		err = blk_mkdir(PORTS, name);
	}
	if (err == -EEXIST) {
		/* which may be disabled */
		err = strcmp(blk_get(enabled, PORTS, name, "enable"), "1") ?
		      blk_set(PORTS, name, "enable", "1") : 0;
	} else if (!err) {
		err = err ?: blk_set(PORTS, name, "addr", o->listen);
		err = err ?: blk_set(PORTS, name, "port", o->port);
		err = err ?: blk_set(PORTS, name, "provider", blk_provider(o));
		err = err ?: blk_set(PORTS, name, "enable", "1");
		if (err)
			blk_rmdir(PORTS, name);
	}
	if (err) {
		error("cannot listen at %s over %s: %s", o->listen,
		      blk_provider(o), blk_text(err));
		return EXIT_FAILED;
	}
	err = blk_link(name, o->name);
	if (!err)
		return EXIT_OK;
	error("cannot link %s into port %s: %s", o->name, name, blk_text(err));
	blk_port_unused(name, NULL);
	return EXIT_FAILED;
}

/* Properties of the volume that may surprise an administrator */
static void blk_warn(const struct options *o)
{
	if (!o->allow)
		error("no client may map %s: --allow says which may", o->name);
	else if (!strcmp(o->allow, "all"))
		error("all that reach its port may map %s", o->name);
	if (!o->listen)
		error("no port reaches %s: --listen says which does", o->name);
}

/* Before the volume is enabled */
static int blk_set_state(const struct options *o)
{
	char *state = NULL;
	int err;

	err = blk_set(VOLUMES, o->name, "uuid", o->uuid);
	if (err || !o->state)
		return err;
	err = blk_take_state(o->state, &state);
	if (!err)
		err = blk_use_state(state, o->name, o->uuid);
	free(state);
	return err;
}

static int blk_export(const struct options *o, char **words)
{
	int err;

	if (!blk_module(TARGET, "kofi_blkt") || !blk_lock())
		return EXIT_FAILED;
	err = blk_mkdir(VOLUMES, o->name);
	if (err) {
		error("cannot export %s as %s: %s", words[0], o->name,
		      err == -EEXIST ? "there is a volume of this name" :
		      blk_text(err));
		return EXIT_FAILED;
	}
	err = blk_set(VOLUMES, o->name, "path", words[0]);
	err = err ?: blk_set_state(o);
	err = err ?: blk_set(VOLUMES, o->name, "discard", o->discard);
	err = err ?: blk_set(VOLUMES, o->name, "allow", o->allow);
	err = err ?: blk_set(VOLUMES, o->name, "access",
			     o->exclusive ? "exclusive" : NULL);
	err = err ?: blk_set(VOLUMES, o->name, "readonly",
			     o->read_only ? "1" : NULL);
	err = err ?: blk_set(VOLUMES, o->name, "enable", "1");
	if (err) {
		error("cannot export %s: %s", words[0],
		      err == -EBUSY ? "it is in use" : blk_text(err));
	} else if (!o->listen || !blk_listen(o)) {
		blk_warn(o);
		return EXIT_OK;
	}
	blk_set(VOLUMES, o->name, "enable", "0");
	blk_rmdir(VOLUMES, o->name);
	return EXIT_FAILED;
}

static int blk_unexport(const struct options *o, char **words)
{
	int err;

	if (!blk_lock())
		return EXIT_FAILED;
	err = blk_set(VOLUMES, words[0], "enable", "0");
	if (!err && o->state) {
		err = blk_save_state(o->state, &words[0], 1);
		if (err) {
			error("cannot write %s: %s", o->state, strerror(-err));
			return EXIT_FAILED;
		}
	}
	if (!err)
		blk_each(PORTS, blk_unlink, words[0]);
	err = err ?: blk_rmdir(VOLUMES, words[0]);
	if (err) {
		error("cannot end volume %s: %s", words[0],
		      err == -ENOENT ? "there is none of this name" :
		      blk_text(err));
		return EXIT_FAILED;
	}
	blk_each(PORTS, blk_port_unused, NULL);
	return EXIT_OK;
}

/* Replace the access list; clients that are no longer in it cannot write from now on. */
static int blk_allow(const struct options *o, char **words)
{
	const struct options warn = {
		.name = words[0], .allow = words[1], .listen = "",
	};
	int err;

	(void)o;
	err = blk_set(VOLUMES, words[0], "allow", words[1]);
	if (!err) {
		blk_warn(&warn);
		return EXIT_OK;
	}
	error("cannot change who may map %s: %s", words[0],
	      err == -ENOENT ? "there is none of this name" : blk_text(err));
	return EXIT_FAILED;
}

static int blk_clients(const struct options *o, char **words)
{
	char text[TEXT_MAX];

	(void)o;
	blk_get(text, VOLUMES, words[0], "clients");
	if (!*text) {
		blk_get(text, VOLUMES, words[0], "enable");
		error(*text ? "no client has %s" :
			      "no client has %s: there is none of this name",
		      words[0]);
		return EXIT_FAILED;
	}
	puts(text);
	return EXIT_OK;
}

/* The size of a device or file has changed: its clients are to know. */
static int blk_resize(const struct options *o, char **words)
{
	int err;

	(void)o;
	err = blk_set(VOLUMES, words[0], "resize", "1");
	if (!err)
		return EXIT_OK;
	error("cannot resize volume %s: %s", words[0],
	      err == -ENOENT ? "there is none of this name" :
	      err == -ENODEV ? "it is not enabled" : blk_text(err));
	return EXIT_FAILED;
}

/* ------------------------------------------------------------------- client */

static const char *blk_map_error(const struct options *o, int err)
{
	switch (-err) {
	case EACCES:
		if (o->key)
			return "the target has no such volume for this identity, or another key";
		return "the target has no volume of this name for this machine";
	case ENOKEY:
	case EKEYEXPIRED:
	case EKEYREVOKED:
		return "the keyring .kofi_blk has no valid key of this description";
	case ERANGE:
		return "the key has a wrong length: 32 to 128 bytes are right";
	case EKEYREJECTED:
		return "the target does not prove that it has the key";
	case EUSERS:
		return "another host has the volume, which is exclusive";
	case ENOSPC:
		return "the target has as many connections as it can have";
	case EPROTONOSUPPORT:
		return "the target speaks another version, or one side demands digests";
	case EBUSY:
		return "the target is still busy with an earlier mapping";
	case ENODATA:
		return "no provider of this name reaches the address";
	case ECONNREFUSED:
		return "nothing listens there";
	case EPROTO:
		return "the target takes this for an error of the protocol";
	case ESTALE:
		return "the target has another volume of this name";
	case ENOTUNIQ:
		return "another target's volume with this UUID is mapped; "
		       "--uuid for both says that they are one";
	case EREMOTEIO:
		return "the target has a problem of its own, which its log may explain";
	}
	return blk_text(err);
}

static int blk_map(const struct options *o, char **words)
{
	char name[TEXT_MAX], text[TEXT_MAX], id[BLK_HOST_ID];
	const char *why;
	int err;

	if (!blk_module(CLIENT, "kofi_blk"))
		return EXIT_FAILED;
	if (o->name)
		snprintf(name, sizeof(name), "%s", o->name);
	else
		snprintf(name, sizeof(name), "%s@%s", words[1], words[0]);
	err = blk_mkdir(CLIENT, name);
	if (err) {
		error("cannot map %s of %s: %s", words[1], words[0],
		      err == -EEXIST ? "there is a mapping of this name; "
				       "choose another with --name" :
		      blk_text(err));
		return EXIT_FAILED;
	}
	err = blk_set(CLIENT, name, "addr", words[0]);
	err = err ?: blk_set(CLIENT, name, "volume", words[1]);
	err = err ?: blk_set(CLIENT, name, "host", o->host ?: blk_host_id(id));
	err = err ?: blk_set(CLIENT, name, "identity", o->identity);
	err = err ?: blk_set(CLIENT, name, "key", o->key);
	err = err ?: blk_set(CLIENT, name, "uuid", o->uuid);
	err = err ?: blk_set(CLIENT, name, "provider", blk_provider(o));
	err = err ?: blk_set(CLIENT, name, "port", o->port);
	err = err ?: blk_set(CLIENT, name, "queues", o->queues);
	err = err ?: blk_set(CLIENT, name, "polled", o->polled);
	err = err ?: blk_set(CLIENT, name, "digest", o->digest);
	err = err ?: blk_set(CLIENT, name, "io_timeout", o->io_timeout);
	err = err ?: blk_set(CLIENT, name, "path_timeout", o->path_timeout);
	err = err ?: blk_set(CLIENT, name, "fast_fail", o->fast_fail);
	why = blk_text(err);
	if (!err) {
		err = blk_set(CLIENT, name, "enable", "1");
		why = blk_map_error(o, err);
	}
	if (err) {
		blk_rmdir(CLIENT, name);
		error("cannot map %s of %s: %s", words[1], words[0], why);
		return EXIT_FAILED;
	}
	printf("/dev/%s\n", blk_get(text, CLIENT, name, "device"));
	return EXIT_OK;
}

struct blk_device {
	const char	*device;
	char		*name;
};

static bool blk_is_device(const char *name, const void *arg)
{
	const struct blk_device *find = arg;
	char device[TEXT_MAX];

	blk_get(device, CLIENT, name, "device");
	/* a volume that is not mapped has no device */
	if (!*device || strcmp(device, find->device))
		return true;
	snprintf(find->name, TEXT_MAX, "%s", name);
	return false;
}

static int blk_unmap(const struct options *o, char **words)
{
	char name[TEXT_MAX];
	const struct blk_device find = {
		.device = strncmp(words[0], "/dev/", 5) ? words[0] : words[0] + 5,
		.name = name,
	};
	int err;

	if (blk_each(CLIENT, blk_is_device, &find))
		snprintf(name, sizeof(name), "%s", words[0]);
	err = blk_set(CLIENT, name, "enable", o->force ? "force" : "0");
	err = err ?: blk_rmdir(CLIENT, name);
	if (!err)
		return EXIT_OK;
	error("cannot unmap %s: %s", words[0],
	      err == -ENOENT ? "no such volume is mapped" :
	      err == -EBUSY ? "it is open" : blk_text(err));
	return EXIT_FAILED;
}

/* --------------------------------------------------------------------- list */

static const struct blk_kind {
	const char	*key;
	const char	*dir;
	const char	*attrs[18];
} blk_kinds[] = {
	{ "volumes", VOLUMES,
	  { "enable", "path", "readonly", "uuid", "discard", "allow",
	    "access", "connections", "stat" } },
	{ "ports", PORTS, { "enable", "addr", "port", "provider", "digest", LINKS } },
	{ "maps", CLIENT,
	  { "device", "state", "addr", "port", "volume", "uuid", "provider", "queues",
	    "polled", "digest", "io_timeout", "path_timeout", "fast_fail", "host",
	    "identity", "key", "stat" } },
	{ NULL, NULL, { NULL } }
};

struct blk_view {
	const struct blk_kind	*kind;
	bool			json;
	bool			*found;
};

/* Lines of an attribute are written with commas in between. */
static void blk_join(char *text)
{
	for (; *text; text++)
		if (*text == '\n')
			*text = ',';
}

static bool blk_add_word(const char *name, const void *arg)
{
	char *text = (char *)arg;

	if (strlen(text) + strlen(name) + 2 > TEXT_MAX)
		return false;
	sprintf(text + strlen(text), "%s%s", *text ? "," : "", name);
	return true;
}

/* An attribute, or the names in a directory, with commas in between */
static void blk_value(char *text, const struct blk_kind *kind, const char *name,
		      const char *attr)
{
	char dir[PATH_MAX];

	blk_get(text, kind->dir, name, attr);
	if (!strcmp(attr, LINKS) && !blk_links(dir, name))
		blk_each(dir, blk_add_word, text);
	blk_join(text);
}

static bool blk_show(const char *name, const void *arg)
{
	const struct blk_view *v = arg;
	const char *const *attr;
	char text[TEXT_MAX];

	*v->found = true;
	if (v->json) {
		json_open(NULL, '{');
		json_string("name", name);
	} else {
		printf("%.*s %s", (int)strlen(v->kind->key) - 1, v->kind->key,
		       name);
	}
	for (attr = v->kind->attrs; *attr; attr++) {
		blk_value(text, v->kind, name, *attr);
		if (v->json)
			json_string(*attr, text);
		else if (*text)
			printf(" %s=%s", *attr, text);
	}
	if (v->json)
		json_close('}');
	else
		putchar('\n');
	return true;
}

static int blk_list(const struct options *o, char **words)
{
	const struct blk_kind *kind;
	bool found = false;

	(void)words;
	if (o->json)
		json_open(NULL, '{');
	for (kind = blk_kinds; kind->key; kind++) {
		const struct blk_view view = {
			.kind = kind, .json = o->json, .found = &found,
		};

		if (o->json)
			json_open(kind->key, '[');
		blk_each(kind->dir, blk_show, &view);
		if (o->json)
			json_close(']');
	}
	if (o->json) {
		json_close('}');
		json_end();
	}
	if (!found)
		error("nothing is exported or mapped");
	return found ? EXIT_OK : EXIT_FAILED;
}

/* ------------------------------------------------------------------- reboots */

static int blk_run_save(const struct options *o, char **words)
{
	(void)o;
	return blk_save(words[0] ?: BLK_SAVED);
}

static int blk_run_restore(const struct options *o, char **words)
{
	return blk_restore(words[0] ?: BLK_SAVED, o->state, o->clear);
}

static int blk_run_clear(const struct options *o, char **words)
{
	(void)words;
	return blk_clear(o->state);
}

/* ------------------------------------------------------------------ command */

static const char blk_usage[] =
"Usage: kofi blk export DEVICE --name VOLUME [--ro] [--allow CLIENT[,...]]\n"
"                [--exclusive] [--uuid UUID] [--state FILE] [--discard 0|1|auto]\n"
"                [--listen ADDR [--port PORT] [-p PROVIDER]]\n"
"       kofi blk unexport VOLUME [--state FILE]\n"
"       kofi blk allow VOLUME CLIENT[,...]\n"
"       kofi blk clients VOLUME\n"
"       kofi blk resize VOLUME\n"
"       kofi blk save [FILE]\n"
"       kofi blk restore [FILE] [--clear] [--state FILE]\n"
"       kofi blk clear [--state FILE]\n"
"       kofi blk map ADDR VOLUME [-p PROVIDER] [--port PORT] [--queues N]\n"
"                [--polled N] [--io-timeout SECONDS] [--path-timeout SECONDS]\n"
"                [--fast-fail SECONDS] [--name NAME] [--host WORD] [--uuid UUID]\n"
"                [--identity NAME --key DESCRIPTION]\n"
"                [--digest off|optional|required]\n"
"       kofi blk unmap NAME|DEVICE [--force]\n"
"       kofi blk list [--json]\n"
"\n"
"A network block device (kofi_blk) and its target (kofi_blkt), through their\n"
"directories in configfs. \"map\" prints the device. A mapping's name is\n"
"VOLUME@ADDR unless told. Ports that \"export\" opens close with their last volume.\n"
"\"save\" writes all volumes and ports to FILE, " BLK_SAVED " unless told, or to\n"
"standard output (-); \"restore\" makes them again, and \"clear\" ends all of them.\n"
"\n"
"      --name NAME        of the volume, or of the mapping\n"
"      --ro               refuse writes\n"
"      --allow CLIENT[,...]  addresses or networks of clients, all, or none; none,\n"
"                         unless given. Or id:NAME=DESCRIPTION: clients that prove to\n"
"                         be NAME by the key of that description in keyring .kofi_blkt\n"
"      --exclusive        one host at a time\n"
"      --uuid UUID        what clients know the volume by; random, unless given. Of a\n"
"                         mapping: no other volume; on each path to it\n"
"      --state FILE       proves from unexport to export, which removes it, that no\n"
"                         write is lost; with --uuid. Or from clear to restore\n"
"      --clear            end what the file does not have, and replace what differs\n"
"      --discard 0|1|auto whether discards free blocks; auto, unless given: not those\n"
"                         of a file that has all of them\n"
"      --listen ADDR      numeric address of the port that reaches the volume\n"
"      --port PORT        4421, unless given\n"
"  -p, --provider NAME    sock (or tcp), verbs; sock, unless given\n"
"      --queues N         connections, 1 to 64\n"
"      --polled N         more of them, for requests that are polled; 64 in all\n"
"      --io-timeout SECONDS    without an answer until connections are made again; 30\n"
"      --path-timeout SECONDS  without a path until requests fail; 600\n"
"      --fast-fail SECONDS     until those fail that multipath can repeat; 0: not earlier\n"
"      --host WORD        names this machine, and no other; derived from\n"
"                         /etc/machine-id, unless given\n"
"      --identity NAME    what this machine proves to be; with --key\n"
"      --key DESCRIPTION  key of that name in keyring .kofi_blk; the target has to prove\n"
"                         that it has the key, too\n"
"      --digest off|optional|required  CRC32C of commands, answers and data; off,\n"
"                         unless given; optional: if the target's port allows it\n"
"      --force            unmap it while it is open: requests fail\n"
"  -j, --json             as JSON\n"
"  -h, --help             this text\n"
"\n"
"Exit code: 0 done, 1 failed or nothing found, 2 wrong usage.\n";

static const struct option blk_options[] = {
	{ "name",	required_argument,	NULL, 'n' },
	{ "ro",		no_argument,		NULL, 'r' },
	{ "allow",	required_argument,	NULL, 'a' },
	{ "uuid",	required_argument,	NULL, 'u' },
	{ "listen",	required_argument,	NULL, 'l' },
	{ "port",	required_argument,	NULL, 'P' },
	{ "provider",	required_argument,	NULL, 'p' },
	{ "queues",	required_argument,	NULL, 'q' },
	{ "polled",	required_argument,	NULL, 'o' },
	{ "io-timeout",	required_argument,	NULL, 't' },
	{ "path-timeout", required_argument,	NULL, 'T' },
	{ "fast-fail",	required_argument,	NULL, 'f' },
	{ "state",	required_argument,	NULL, 's' },
	{ "host",	required_argument,	NULL, 'H' },
	{ "identity",	required_argument,	NULL, 'i' },
	{ "key",	required_argument,	NULL, 'k' },
	{ "digest",	required_argument,	NULL, 'D' },
	{ "clear",	no_argument,		NULL, 'c' },
	{ "exclusive",	no_argument,		NULL, 'x' },
	{ "discard",	required_argument,	NULL, 'd' },
	{ "force",	no_argument,		NULL, 'F' },
	{ "json",	no_argument,		NULL, 'j' },
	{ "help",	no_argument,		NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

static const struct blk_command {
	const char	*name;
	int		(*run)(const struct options *o, char **words);
	int		words;
	int		more;		/* words that may be missing */
	const char	*options;	/* letters of its options */
	const char	*wants;
} blk_commands[] = {
	{ "export", blk_export, 1, 0, "nraxudlPps", "a device" },
	{ "unexport", blk_unexport, 1, 0, "s", "a volume" },
	{ "allow", blk_allow, 2, 0, "", "a volume and clients" },
	{ "clients", blk_clients, 1, 0, "", "a volume" },
	{ "resize", blk_resize, 1, 0, "", "a volume" },
	{ "map", blk_map, 2, 0, "nPpqotTfHuikD", "an address and a volume" },
	{ "unmap", blk_unmap, 1, 0, "F", "a name or a device" },
	{ "list", blk_list, 0, 0, "j", "nothing else" },
	{ "save", blk_run_save, 0, 1, "", "one file at most" },
	{ "restore", blk_run_restore, 0, 1, "cs", "one file at most" },
	{ "clear", blk_run_clear, 0, 0, "s", "nothing else" },
	{ NULL, NULL, 0, 0, NULL, NULL }
};

/* Member that keeps an option's argument */
static const char **blk_option(struct options *o, int opt)
{
	switch (opt) {
	case 'n':
		return &o->name;
	case 'a':
		return &o->allow;
	case 'u':
		return &o->uuid;
	case 'd':
		return &o->discard;
	case 'l':
		return &o->listen;
	case 'P':
		return &o->port;
	case 'p':
		return &o->provider;
	case 'q':
		return &o->queues;
	case 'o':
		return &o->polled;
	case 't':
		return &o->io_timeout;
	case 'T':
		return &o->path_timeout;
	case 'f':
		return &o->fast_fail;
	case 's':
		return &o->state;
	case 'H':
		return &o->host;
	case 'i':
		return &o->identity;
	case 'k':
		return &o->key;
	case 'D':
		return &o->digest;
	}
	return NULL;
}

/* ------------------------------------------------------------------- checks */

/*
 * Arguments that the modules would refuse are wrong usage, and are reported before
 * anything has been made. A missing option is valid.
 */

static int blk_check_words(const struct blk_command *c, const struct options *o,
			   char **words)
{
	const char *volume = c->run == blk_map ? words[1] : o->name;

	if (c->run == blk_export && !o->name)
		return usage_error("blk", "export wants --name");
	if (c->run == blk_export && !blk_word(words[0], PATH_LEN))
		return usage_error("blk",
				   "a device's path has 1 to %d bytes, no blanks",
				   PATH_LEN);
	if (c->run == blk_map && !blk_address(words[0]))
		return usage_error("blk", "%s is no numeric address", words[0]);
	if (!blk_name(volume, KBLK_NAME_LEN))
		return usage_error("blk",
				   "\"%s\" is no volume: it has 1 to %d bytes, no blanks, no /, and no . first",
				   volume, KBLK_NAME_LEN);
	if (!blk_name(o->name, NAME_MAX))
		return usage_error("blk",
				   "\"%s\" is no name: it has 1 to %d bytes, no blanks, no /, and no . first",
				   o->name, NAME_MAX);
	return 0;
}

static int blk_check(const struct blk_command *c, const struct options *o)
{
	uint64_t value, queues = 1, polled = 0;

	if (!blk_nets(o->allow))
		return usage_error("blk",
				   "--allow wants all, none, up to %d of ADDRESS or ADDRESS/BITS, or of id:NAME=DESCRIPTION",
				   ALLOW_NETS);
	if (c->run == blk_export && o->state && !o->uuid)
		return usage_error("blk", "--state goes with --uuid");
	if (o->discard && strcmp(o->discard, "0") && strcmp(o->discard, "1") &&
	    strcmp(o->discard, "auto"))
		return usage_error("blk", "--discard wants 0, 1, or auto");
	if (c->run == blk_export && !o->listen && (o->port || o->provider))
		return usage_error("blk", "--port and --provider go with --listen");
	if (!blk_address(o->listen))
		return usage_error("blk", "%s is no numeric address", o->listen);
	if (!blk_number(o->port, 1, 65535, &value))
		return usage_error("blk", "%s is no port", o->port);
	if (!blk_word(o->provider, WORD_LEN))
		return usage_error("blk", "\"%s\" is no provider", o->provider);
	if (!blk_uuid(o->uuid))
		return usage_error("blk", "%s is no UUID", o->uuid);
	if (!blk_number(o->queues, 1, KBLK_QUEUES, &queues) ||
	    !blk_number(o->polled, 0, KBLK_QUEUES, &polled) ||
	    queues + polled > KBLK_QUEUES)
		return usage_error("blk",
				   "queues are 1 to %d, those that are polled included",
				   KBLK_QUEUES);
	if (!blk_number(o->io_timeout, 1, 86400, &value) ||
	    !blk_number(o->path_timeout, 1, 86400, &value) ||
	    !blk_number(o->fast_fail, 0, 86400, &value))
		return usage_error("blk", "a time-out is 1 to 86400 seconds");
	if (!blk_word(o->host, WORD_LEN))
		return usage_error("blk",
				   "--host wants a word of 1 to %d bytes, no blanks",
				   WORD_LEN);
	if (!blk_digest(o->digest))
		return usage_error("blk", "--digest wants off, optional or required");
	if (!o->identity != !o->key)
		return usage_error("blk", "--identity and --key go together");
	if (!blk_identity(o->identity) || !blk_identity(o->key))
		return usage_error("blk",
				   "--identity and --key want a word of 1 to %d bytes, no blanks, no comma, no =",
				   WORD_LEN);
	return 0;
}

int cmd_blk(int argc, char **argv)
{
	const struct blk_command *c = blk_commands;
	struct options o = { 0 };
	int opt;

	if (argc < 2 || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		fputs(blk_usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? EXIT_USAGE : EXIT_OK;
	}
	while (c->name && strcmp(argv[1], c->name))
		c++;
	if (!c->name)
		return usage_error("blk", "%s is no command", argv[1]);
	argc--;
	argv++;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "p:jh", blk_options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(blk_usage, stdout);
			return EXIT_OK;
		}
		if (opt == '?')
			return usage_error("blk", "%s is no option, or wants a value",
					   argv[optind - 1]);
		if (!strchr(c->options, opt))
			return usage_error("blk", "%s does not take that option",
					   c->name);
		if (opt == 'r')
			o.read_only = true;
		else if (opt == 'j')
			o.json = true;
		else if (opt == 'x')
			o.exclusive = true;
		else if (opt == 'F')
			o.force = true;
		else if (opt == 'c')
			o.clear = true;
		else
			*blk_option(&o, opt) = optarg;
	}
	if (argc - optind < c->words || argc - optind > c->words + c->more)
		return usage_error("blk", "%s wants %s", c->name, c->wants);
	if (c->run == blk_allow && !blk_nets(argv[optind + 1]))
		return usage_error("blk", "%s is no list of clients",
				   argv[optind + 1]);
	if (blk_check_words(c, &o, argv + optind) || blk_check(c, &o))
		return EXIT_USAGE;
	return c->run(&o, argv + optind);
}
