// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi blk save, restore and clear: the target's configuration outlives the machine.
 *
 *	version = 1
 *
 *	[volume vol0]
 *	path = /dev/vdb
 *	...
 *	[port lan]
 *	addr = 10.0.0.1
 *	...
 *	volume = vol0
 *
 * All of a file is read and checked before anything is made. Then it is compared with
 * the existing configuration, and only attributes that differ are written. So clients of
 * equal volumes are not disturbed, and a restore that has failed can be repeated.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blk.h"

#define VERSION		1
#define FILE_MAX	1048576
#define CONNS_MAX	65536	/* KBLKT_CONNS_MAX of the module */
#define KEYS		9

/* ----------------------------------------------------------------- attributes */

/*
 * Write a value to @to, TEXT_MAX bytes, as the module shows it; false if the module
 * does not take it.
 */
typedef bool (*form_fn)(char *to, const char *value);

static bool form_same(char *to, const char *value)
{
	return snprintf(to, TEXT_MAX, "%s", value) < TEXT_MAX;
}

static bool form_path(char *to, const char *value)
{
	return form_same(to, value) && blk_word(value, PATH_LEN);
}

static bool form_word(char *to, const char *value)
{
	return form_same(to, value) && blk_word(value, WORD_LEN);
}

static bool form_address(char *to, const char *value)
{
	return form_same(to, value) && blk_address(value);
}

static bool form_port(char *to, const char *value)
{
	uint64_t port;

	return form_same(to, value) && blk_number(value, 1, 65535, &port);
}

static bool form_connections(char *to, const char *value)
{
	uint64_t conns;

	return form_same(to, value) &&
	       blk_number(value, 1, CONNS_MAX, &conns);
}

static bool form_bool(char *to, const char *value)
{
	return form_same(to, value) &&
	       (!strcmp(value, "0") || !strcmp(value, "1"));
}

static bool form_discard(char *to, const char *value)
{
	return form_bool(to, value) || !strcmp(value, "auto");
}

static bool form_access(char *to, const char *value)
{
	return form_same(to, value) &&
	       (!strcmp(value, "shared") || !strcmp(value, "exclusive"));
}

static bool form_digest(char *to, const char *value)
{
	return form_same(to, value) && blk_digest(value);
}

static bool form_uuid(char *to, const char *value)
{
	if (!blk_uuid(value))
		return false;
	for (; *value; value++)
		*to++ = *value >= 'A' && *value <= 'F' ? *value | 0x20 : *value;
	*to = '\0';
	return true;
}

/*
 * ADDRESS[%SCOPE][/BITS] always with the bits. The module shows an interface's number,
 * which may be another one after booting, so it is kept by name.
 */
static bool form_net(char *to, size_t size, char *net)
{
	char addr[INET6_ADDRSTRLEN], name[IF_NAMESIZE];
	unsigned char binary[16];
	char *bits, *scope;
	uint64_t index;
	int family;

	/* the key itself stays in its keyring */
	if (!strncmp(net, BLK_ID, strlen(BLK_ID)))
		return snprintf(to, size, "%s", net) < (int)size;
	bits = strchr(net, '/');
	if (bits)
		*bits++ = '\0';
	scope = strchr(net, '%');
	if (scope)
		*scope++ = '\0';
	family = strchr(net, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(family, net, binary) != 1)
		return false;
	inet_ntop(family, binary, addr, sizeof(addr));
	if (scope && parse_number(scope, UINT32_MAX, &index) &&
	    if_indextoname(index, name))
		scope = name;
	return snprintf(to, size, "%s%s%s/%s", addr, scope ? "%" : "",
			scope ?: "",
			bits ?: family == AF_INET6 ? "128" : "32") < (int)size;
}

/* A line for each net of the module becomes a list. */
static bool form_allow(char *to, const char *value)
{
	char list[TEXT_MAX], *at, *net;
	size_t n = 0;

	if (!form_same(list, value))
		return false;
	for (at = list; *at; at++)
		if (*at == '\n')
			*at = ',';
	if (!blk_nets(list))
		return false;
	if (!strcmp(list, "all") || !strcmp(list, "none"))
		return form_same(to, list);
	for (at = list; (net = strsep(&at, ",")); n += strlen(to + n)) {
		if (n)
			to[n++] = ',';
		if (n >= TEXT_MAX || !form_net(to + n, TEXT_MAX - n, net))
			return false;
	}
	return true;
}

/*
 * In the order in which they are written; "enable" is the last one, when all else has
 * been made. @preset is the value in a new directory, and of an attribute that a file
 * lacks; NULL: the attribute is left alone.
 */
static const struct kind {
	const char	*name;
	const char	*dir;
	size_t		name_len;
	struct key {
		const char	*name;
		form_fn		form;
		const char	*preset;
	} keys[KEYS];
} kinds[] = {
	{ "volume", VOLUMES, KBLK_NAME_LEN, {
		{ "path", form_path, NULL },
		{ "uuid", form_uuid, NULL },
		{ "readonly", form_bool, "0" },
		{ "direct", form_bool, "1" },
		{ "discard", form_discard, "auto" },
		{ "access", form_access, "shared" },
		{ "connections", form_connections, "256" },
		{ "allow", form_allow, "none" },
		{ "enable", form_bool, "0" },
	} },
	{ "port", PORTS, NAME_MAX, {
		{ "addr", form_address, NULL },
		{ "port", form_port, KBLK_PORT },
		{ "provider", form_word, "sock" },
		{ "digest", form_digest, "optional" },
		{ "enable", form_bool, "0" },
	} },
	{ NULL, NULL, 0, { { NULL, NULL, NULL } } }
};

#define VOLUME	(&kinds[0])
#define PORT	(&kinds[1])

static const struct key *kind_key(const struct kind *kind, const char *name)
{
	const struct key *key;

	for (key = kind->keys; key < kind->keys + KEYS && key->name; key++)
		if (!strcmp(key->name, name))
			return key;
	return NULL;
}

/*
 * Test for an attribute that the first programs and modules do not have. It is saved unless
 * it has its preset, so those programs read the file. Without the attribute, a module works
 * as with the preset.
 */
static bool is_added(const struct key *key)
{
	return key->form == form_digest;
}

/* The value that there is, in the form of the file; empty if there is none */
static int live(char *value, const struct kind *kind, const char *name,
		const struct key *key)
{
	char text[TEXT_MAX];
	int err = blk_read(text, kind->dir, name, key->name);

	*value = '\0';
	if (err || !*text)
		return err;
	return key->form(value, text) ? 0 : -EPROTO;
}

static bool is_enabled(const struct kind *kind, const char *name)
{
	char text[TEXT_MAX];

	return !strcmp(blk_get(text, kind->dir, name, "enable"), "1");
}

/* The names in a directory, sorted; @n of them, or a negative errno */
static int names_of(const char *dir, char ***names)
{
	struct dirent **found;
	int i, n = 0, nr;

	nr = scandir(dir, &found, NULL, alphasort);
	if (nr < 0)
		return -errno;
	*names = calloc(nr + 1, sizeof(**names));
	for (i = 0; i < nr; i++) {
		if (*names && strcmp(found[i]->d_name, ".") &&
		    strcmp(found[i]->d_name, ".."))
			(*names)[n++] = strdup(found[i]->d_name);
		free(found[i]);
	}
	free(found);
	return *names ? n : -ENOMEM;
}

/* ----------------------------------------------------------------------- files */

/* Make a change of a directory last. */
static int sync_dir(const char *file)
{
	const char *name = strrchr(file, '/');
	char dir[PATH_MAX];
	int fd, err = 0;

	snprintf(dir, sizeof(dir), "%.*s", name ? (int)(name - file) + 1 : 1,
		 name ? file : ".");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

/* The file has its former content, or all of @text. */
static int write_file(const char *file, const char *text, size_t len)
{
	char temp[PATH_MAX];
	int fd, err = 0;
	ssize_t n;

	if (snprintf(temp, sizeof(temp), "%s.new", file) >= (int)sizeof(temp))
		return -ENAMETOOLONG;
	unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		err = -errno;
	else if ((size_t)n != len)
		err = -ENOSPC;
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(temp, file))
		err = -errno;
	if (!err)
		return sync_dir(file);
	unlink(temp);
	return err;
}

/* All of a regular file, as text */
static int read_file(const char *file, char **text)
{
	struct stat st;
	char *at;
	size_t n;
	FILE *f;
	int fd;

	*text = calloc(1, FILE_MAX + 2);
	if (!*text)
		return -ENOMEM;
	/* a pipe without a writer does not keep it waiting */
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		fclose(f);
		return -EINVAL;
	}
	n = fread(*text, 1, FILE_MAX + 1, f);
	fclose(f);
	if (n > FILE_MAX)
		return -EFBIG;
	for (at = *text; at < *text + n; at++)
		if ((unsigned char)*at < 0x20 ? !strchr("\t\r\n", *at) || !*at :
						*at == 0x7f)
			return -EILSEQ;
	return 0;
}

static const char *file_error(int err)
{
	return err == -EILSEQ ? "it is no text" :
	       err == -EINVAL ? "it is no regular file" : strerror(-err);
}

/* ----------------------------------------------------------------------- state */

/*
 * For each volume a line with its UUID, and the incarnations of which all is on stable
 * storage
 */
int blk_save_state(const char *file, char **volumes, size_t n)
{
	char value[TEXT_MAX], *text = NULL;
	size_t i, len = 0;
	int err = 0;
	FILE *f;

	f = open_memstream(&text, &len);
	if (!f)
		return -errno;
	for (i = 0; i < n; i++) {
		fprintf(f, "%s\n", blk_get(value, VOLUMES, volumes[i], "uuid"));
		fprintf(f, "%s\n", blk_get(value, VOLUMES, volumes[i], "stable"));
	}
	if (fclose(f))
		err = -errno;
	err = err ?: write_file(file, text, len);
	free(text);
	return err;
}

/*
 * A state is used once: it has gone for good before a volume is enabled. Without a
 * file there is none, as when the target has crashed.
 */
int blk_take_state(const char *file, char **text)
{
	int err = read_file(file, text);

	if (err == -ENOENT)
		return 0;
	if (err)
		return err;
	return unlink(file) ? -errno : sync_dir(file);
}

/* Give the disabled volume its proofs, if the state has any. */
int blk_use_state(const char *text, const char *volume, const char *uuid)
{
	char stable[TEXT_MAX] = "";
	size_t n, len = 0;
	bool own = false;

	for (; *text; text += n + !!text[n]) {
		n = strcspn(text, "\n");
		if (memchr(text, '-', n)) {
			own = n == strlen(uuid) && !strncasecmp(text, uuid, n);
		} else if (own && n) {
			if (len + n + 2 > sizeof(stable))
				return -EINVAL;
			len += sprintf(stable + len, "%s%.*s", len ? "," : "",
				       (int)n, text);
		}
	}
	return blk_set(VOLUMES, volume, "stable", len ? stable : NULL);
}

/* ------------------------------------------------------------------------ save */

static bool save_links(FILE *f, const char *port)
{
	char dir[PATH_MAX], volume[TEXT_MAX], **links;
	int i, n;

	n = blk_links(dir, port) ?: names_of(dir, &links);
	if (n < 0) {
		error("cannot read the links of port %s: %s", port, blk_text(n));
		return false;
	}
	for (i = 0; i < n; i++)
		if (blk_linked(volume, port, links[i]))
			fprintf(f, "volume = %s\n", volume);
	return true;
}

static bool save_one(FILE *f, const struct kind *kind, const char *name)
{
	const struct key *key;
	char value[TEXT_MAX];
	int err;

	if (!blk_name(name, kind->name_len)) {
		error("%s \"%s\" cannot be saved: a name has no blanks, and no . first",
		      kind->name, name);
		return false;
	}
	fprintf(f, "\n[%s %s]\n", kind->name, name);
	for (key = kind->keys; key < kind->keys + KEYS && key->name; key++) {
		err = live(value, kind, name, key);
		if (is_added(key) && (err == -ENOENT || !strcmp(value, key->preset)))
			continue;
		if (err) {
			error("cannot save %s of %s %s: %s", key->name,
			      kind->name, name, blk_text(err));
			return false;
		}
		if (*value)
			fprintf(f, "%s = %s\n", key->name, value);
	}
	return kind != PORT || save_links(f, name);
}

static bool save_all(FILE *f)
{
	const struct kind *kind;
	int i, n, found = 0;
	char **names;

	fprintf(f, "# Target of kofi blk; kofi-blk(8) describes it\nversion = %d\n",
		VERSION);
	for (kind = kinds; kind->name; kind++) {
		n = names_of(kind->dir, &names);
		if (n < 0) {
			error("cannot read %s: %s%s", kind->dir, blk_text(n),
			      n == -ENOENT ? "; is kofi_blkt loaded?" : "");
			return false;
		}
		found += n;
		for (i = 0; i < n; i++)
			if (!save_one(f, kind, names[i]))
				return false;
	}
	if (!found)
		error("there is no volume and no port to save");
	return found;
}

int blk_save(const char *file)
{
	char *text = NULL;
	size_t len = 0;
	bool saved;
	FILE *f;
	int err;

	if (!blk_lock())
		return EXIT_FAILED;
	f = open_memstream(&text, &len);
	if (!f)
		return EXIT_FAILED;
	saved = save_all(f);
	if (fclose(f) || !saved)
		return EXIT_FAILED;
	if (!strcmp(file, "-")) {
		fputs(text, stdout);
		return EXIT_OK;
	}
	if (!strcmp(file, BLK_SAVED))
		mkdir("/etc/kofi", 0755);
	err = write_file(file, text, len);
	if (!err)
		return EXIT_OK;
	error("cannot write %s: %s", file, strerror(-err));
	return EXIT_FAILED;
}

/* ------------------------------------------------------------------------ read */

struct object {
	struct object		*next;
	const struct kind	*kind;
	const char		*name;
	char			*values[KEYS];	/* NULL: not in the file */
	struct link {
		struct link	*next;
		const char	*volume;
	} *links;
	unsigned int		line;
	bool			failed;	/* a failure has been reported */
	bool			usable;	/* the directory exists, with all its attributes */
};

struct saved {
	const char	*file;
	unsigned int	line;	/* that is read */
	bool		versed;	/* the version is known */
	struct object	*first;
	struct object	*last;
};

/* Print the error of a line; always false */
static bool __attribute__((format(printf, 2, 3)))
refuse(const struct saved *s, const char *fmt, ...)
{
	char why[TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	error("%s:%u: %s", s->file, s->line, why);
	return false;
}

static struct object *find(const struct saved *s, const struct kind *kind,
			   const char *name)
{
	struct object *o = s->first;

	while (o && (o->kind != kind || strcmp(o->name, name)))
		o = o->next;
	return o;
}

static bool to_enable(const struct object *o)
{
	const struct key *key = kind_key(o->kind, "enable");

	return !strcmp(o->values[key - o->kind->keys], "1");
}

/* This program cannot know the meaning of a later version's file. */
static bool read_version(struct saved *s, const char *key, const char *value)
{
	uint64_t version;

	if (strcmp(key, "version"))
		return refuse(s, "the first line has to be the version");
	if (!blk_number(value, 1, UINT32_MAX, &version))
		return refuse(s, "%.60s is no version", value);
	if (version > VERSION)
		return refuse(s, "version %s is newer than this program, which reads up to %d",
			      value, VERSION);
	s->versed = true;
	return true;
}

/* "[volume vol0]" */
static bool read_head(struct saved *s, char *line)
{
	char *end = line + strlen(line) - 1, *name = strchr(line, ' ');
	const struct kind *kind;
	struct object *o;

	if (!s->versed)
		return read_version(s, line, "");
	if (*end != ']' || !name)
		return refuse(s, "neither [volume NAME] nor [port NAME]");
	*end = '\0';
	*name++ = '\0';
	for (kind = kinds; kind->name && strcmp(kind->name, line + 1);)
		kind++;
	if (!kind->name)
		return refuse(s, "\"%.60s\" is neither volume nor port", line + 1);
	if (!blk_name(name, kind->name_len))
		return refuse(s, "\"%.60s\" is no name of a %s", name, kind->name);
	if (find(s, kind, name))
		return refuse(s, "a second %s %s", kind->name, name);
	o = calloc(1, sizeof(*o));
	if (!o)
		return refuse(s, "%s", strerror(ENOMEM));
	o->kind = kind;
	o->name = name;
	o->line = s->line;
	*(s->last ? &s->last->next : &s->first) = o;
	s->last = o;
	return true;
}

static bool read_link(struct saved *s, struct object *o, const char *volume)
{
	struct link *link, **at = &o->links;

	for (; *at; at = &(*at)->next)
		if (!strcmp((*at)->volume, volume))
			return refuse(s, "a second time volume %.60s", volume);
	link = calloc(1, sizeof(*link));
	if (!link)
		return refuse(s, "%s", strerror(ENOMEM));
	link->volume = volume;
	*at = link;
	return true;
}

static bool read_value(struct saved *s, struct object *o, const char *name,
		       const char *value)
{
	const struct key *key = kind_key(o->kind, name);
	char form[TEXT_MAX];

	if (o->kind == PORT && !strcmp(name, "volume"))
		return read_link(s, o, value);
	if (!key)
		return refuse(s, "a %s has no %.60s", o->kind->name, name);
	if (o->values[key - o->kind->keys])
		return refuse(s, "a second %s", name);
	if (!key->form(form, value))
		return refuse(s, "\"%.60s\" is no %s of a %s", value, name,
			      o->kind->name);
	o->values[key - o->kind->keys] = strdup(form);
	return true;
}

static bool read_line(struct saved *s, char *line)
{
	char *value = strchr(line, '=');
	size_t n;

	for (n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--)
		line[n - 1] = '\0';
	if (!*line || *line == '#')
		return true;
	if (*line == '[')
		return read_head(s, line);
	if (!value)
		return refuse(s, "neither KEY = VALUE nor a [head]");
	n = value - line;
	while (n && strchr(" \t", line[n - 1]))
		n--;
	value += 1 + strspn(value + 1, " \t");
	line[n] = '\0';
	if (!s->versed)
		return read_version(s, line, value);
	if (!s->last)
		return refuse(s, "%.60s belongs to no volume and no port", line);
	return read_value(s, s->last, line, value);
}

/* Checks of the whole file; an attribute that it lacks gets its preset. */
static bool read_end(struct saved *s)
{
	const struct key *key;
	struct object *o;
	struct link *l;
	char **value;

	if (!s->versed)
		return refuse(s, "there is no version");
	for (o = s->first; o; o = o->next) {
		s->line = o->line;
		for (key = o->kind->keys, value = o->values;
		     key < o->kind->keys + KEYS && key->name; key++, value++)
			if (!*value && key->preset)
				*value = strdup(key->preset);
		if (o->kind == VOLUME && !o->values[1])
			return refuse(s, "volume %s has no uuid, by which its clients know it",
				      o->name);
		if (!o->values[0] && to_enable(o))
			return refuse(s, "%s %s has no %s", o->kind->name,
				      o->name, o->kind->keys[0].name);
		for (l = o->links; l; l = l->next)
			if (!find(s, VOLUME, l->volume))
				return refuse(s, "port %s has volume %.60s, which is not there",
					      o->name, l->volume);
	}
	return true;
}

/* All of the file is right, or it is refused. */
static bool read_saved(struct saved *s, const char *file)
{
	char *text, *line;
	int err;

	*s = (struct saved){ .file = file };
	err = read_file(file, &text);
	if (err) {
		error("cannot read %s: %s", file, file_error(err));
		return false;
	}
	while ((line = strsep(&text, "\n"))) {
		s->line++;
		if (!read_line(s, line + strspn(line, " \t")))
			return false;
	}
	return read_end(s);
}

/* --------------------------------------------------------------------- restore */

/* Print the error of an object; always false */
static bool __attribute__((format(printf, 2, 3)))
fails(struct object *o, const char *fmt, ...)
{
	char why[2 * TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	error("%s %s: %s", o->kind->name, o->name, why);
	o->failed = true;
	return false;
}

/* Most attributes cannot change while enabled; then @clear disables the object. */
static bool put(struct object *o, const struct key *key, const char *value,
		bool clear)
{
	const struct kind *kind = o->kind;
	char now[TEXT_MAX];
	int err;

	err = live(now, kind, o->name, key);
	if (!err && !strcmp(now, value))
		return true;
	if (err == -ENOENT && is_added(key) && !strcmp(value, key->preset))
		return true;
	err = blk_set(kind->dir, o->name, key->name, value);
	if (err == -EBUSY && is_enabled(kind, o->name)) {
		if (!clear)
			return fails(o, "it is enabled with %s %s, not %s; --clear replaces it",
				     key->name, now, value);
		err = blk_set(kind->dir, o->name, "enable", "0") ?:
		      blk_set(kind->dir, o->name, key->name, value);
	}
	if (err)
		return fails(o, "cannot set %s to %s: %s", key->name, value,
			     err == -EBUSY ? "it is in use" : blk_text(err));
	err = live(now, kind, o->name, key);
	if (err || strcmp(now, value))
		return fails(o, "%s is %s, not %s as was written", key->name,
			     err ? blk_text(err) : now, value);
	return true;
}

static bool restore_attributes(struct object *o, const char *state, bool clear)
{
	const struct key *key;
	char **value = o->values;
	int err;

	err = blk_mkdir(o->kind->dir, o->name);
	if (err && err != -EEXIST)
		return fails(o, "cannot be made: %s", blk_text(err));
	for (key = o->kind->keys; strcmp(key->name, "enable"); key++, value++)
		if (*value && !put(o, key, *value, clear))
			return false;
	if (o->kind != VOLUME || is_enabled(o->kind, o->name))
		return true;
	err = blk_use_state(state, o->name, o->values[1]);
	if (err)
		fails(o, "its state is refused: %s", blk_text(err));
	return true;
}

/* A port without one of its volumes serves the others. */
static void restore_links(const struct saved *s, struct object *o)
{
	const struct link *l;
	int err;

	for (l = o->links; l; l = l->next) {
		if (!find(s, VOLUME, l->volume)->usable) {
			fails(o, "volume %s is not linked, as it has failed",
			      l->volume);
			continue;
		}
		err = blk_link(o->name, l->volume);
		if (err)
			fails(o, "cannot link volume %s: %s", l->volume,
			      blk_text(err));
	}
}

static void restore_enable(struct object *o, bool clear)
{
	bool to = to_enable(o);
	int err;

	if (is_enabled(o->kind, o->name) == to)
		return;
	if (!to && !clear) {
		fails(o, "it is enabled, and is not to be; --clear disables it");
		return;
	}
	err = blk_set(o->kind->dir, o->name, "enable", to ? "1" : "0");
	if (err)
		fails(o, "cannot %s %s: %s", to ? "enable" : "disable",
		      o->values[0], err == -EBUSY ? "it is in use" : blk_text(err));
	else if (is_enabled(o->kind, o->name) != to)
		fails(o, "enable is not %d, as was written", to);
}

/* ----------------------------------------------------------------------- clear */

static bool end_failed(const struct kind *kind, const char *name, int err)
{
	if (err)
		error("cannot end %s %s: %s", kind->name, name, blk_text(err));
	return err;
}

static bool end_volume(const char *name)
{
	int err = blk_set(VOLUMES, name, "enable", "0");

	if (!err)
		blk_each(PORTS, blk_unlink, name);
	return end_failed(VOLUME, name, err ?: blk_rmdir(VOLUMES, name));
}

/* Remove links that @o lacks; all if it is NULL. */
static void end_links(const char *name, const struct object *o)
{
	char dir[PATH_MAX], volume[TEXT_MAX], **links;
	const struct link *l;
	int i, n;

	n = blk_links(dir, name) ?: names_of(dir, &links);
	for (i = 0; i < n; i++) {
		if (!blk_linked(volume, name, links[i]))
			continue;
		for (l = o ? o->links : NULL; l && strcmp(l->volume, volume);)
			l = l->next;
		if (!l)
			blk_unlink(name, volume);
	}
}

static bool end_port(const char *name)
{
	int err = blk_set(PORTS, name, "enable", "0");

	if (!err)
		end_links(name, NULL);
	return end_failed(PORT, name, err ?: blk_rmdir(PORTS, name));
}

/*
 * End all that @s lacks; whether something failed. Volumes are the first, so that their
 * clients still have a connection by which they learn that nothing is lost.
 */
static bool end_others(const struct saved *s)
{
	const struct kind *kind;
	bool failed = false;
	struct object *o;
	char **names;
	int i, n;

	for (kind = kinds; kind->name; kind++) {
		n = names_of(kind->dir, &names);
		for (i = 0; i < n; i++) {
			o = find(s, kind, names[i]);
			if (!o)
				failed |= kind == VOLUME ? end_volume(names[i]) :
							   end_port(names[i]);
			else if (kind == PORT)
				end_links(names[i], o);
		}
	}
	return failed;
}

int blk_clear(const char *state)
{
	const struct saved nothing = { 0 };
	bool failed = false;
	char **names;
	int i, n, err;

	if (!blk_lock())
		return EXIT_FAILED;
	n = names_of(VOLUMES, &names);
	for (i = 0; i < n; i++)
		failed |= end_failed(VOLUME, names[i],
				     blk_set(VOLUMES, names[i], "enable", "0"));
	if (n > 0 && state) {
		err = blk_save_state(state, names, n);
		if (err)
			error("cannot write %s: %s", state, strerror(-err));
		failed |= err;
	}
	return end_others(&nothing) || failed ? EXIT_FAILED : EXIT_OK;
}

int blk_restore(const char *file, const char *state, bool clear)
{
	const struct kind *kind;
	bool failed = false;
	char *proofs = "";
	struct saved s;
	struct object *o;
	int err;

	if (!read_saved(&s, file))
		return EXIT_USAGE;
	if (!blk_module(TARGET, "kofi_blkt") || !blk_lock())
		return EXIT_FAILED;
	err = state ? blk_take_state(state, &proofs) : 0;
	if (err) {
		error("cannot take %s: %s", state, file_error(err));
		proofs = "";
		failed = true;
	}
	if (clear)
		failed |= end_others(&s);
	for (kind = kinds; kind->name; kind++)
		for (o = s.first; o; o = o->next)
			if (o->kind == kind)
				o->usable = restore_attributes(o, proofs, clear);
	for (o = s.first; o; o = o->next)
		if (o->usable)
			restore_links(&s, o);
	for (kind = kinds; kind->name; kind++)
		for (o = s.first; o; o = o->next)
			if (o->kind == kind && o->usable)
				restore_enable(o, clear);
	for (o = s.first; o; o = o->next)
		failed |= o->failed;
	return failed ? EXIT_FAILED : EXIT_OK;
}
