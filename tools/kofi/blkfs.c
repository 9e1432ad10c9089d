// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions for all commands of kofi blk: directories and attributes in configfs, the
 * lock, and checks of words before they are written there.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blk.h"

/* Load the module if its directory is not there. */
bool blk_module(const char *dir, const char *module)
{
	struct stat st;

	if (!stat(dir, &st))
		return true;
	load_module(module);
	if (!stat(dir, &st))
		return true;
	error("%s is not there: is %s loaded, and configfs mounted?", dir,
	      module);
	return false;
}

static bool blk_path(char *path, const char *dir, const char *name,
		     const char *attr)
{
	if (!*name || strchr(name, '/') || !strcmp(name, ".") ||
	    !strcmp(name, ".."))
		return false;
	return snprintf(path, PATH_MAX, "%s/%s%s%s", dir, name,
			attr ? "/" : "", attr ?: "") < PATH_MAX;
}

/* A directory that is root's alone, or a capability that is missing: not permitted. */
static int blk_errno(void)
{
	return errno == EACCES ? -EPERM : -errno;
}

const char *blk_text(int err)
{
	return err == -EPERM ? "not permitted; only root may, with CAP_SYS_ADMIN" :
			       strerror(-err);
}

/* 0 or a negative errno */
int blk_set(const char *dir, const char *name, const char *attr,
	    const char *value)
{
	char path[PATH_MAX];
	int fd, err = 0;
	ssize_t n;

	if (!value)
		return 0;
	if (!blk_path(path, dir, name, attr))
		return -EINVAL;
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return blk_errno();
	/* the kernel does not get to see an empty one, and takes a page at most */
	n = *value ? write(fd, value, strlen(value)) : 0;
	if (n < 0)
		err = -errno;
	else if (!n || (size_t)n < strlen(value))
		err = -EINVAL;
	close(fd);
	return err;
}

/* Without the trailing newline */
int blk_read(char *text, const char *dir, const char *name, const char *attr)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	*text = '\0';
	if (!blk_path(path, dir, name, attr))
		return -EINVAL;
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return blk_errno();
	n = read(fd, text, TEXT_MAX - 1);
	close(fd);
	if (n < 0)
		return -errno;
	if (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	return 0;
}

/* Empty if it cannot be read */
char *blk_get(char *text, const char *dir, const char *name, const char *attr)
{
	blk_read(text, dir, name, attr);
	return text;
}

int blk_mkdir(const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (!blk_path(path, dir, name, NULL))
		return -EINVAL;
	return mkdir(path, 0755) ? blk_errno() : 0;
}

int blk_rmdir(const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (!blk_path(path, dir, name, NULL))
		return -EINVAL;
	return rmdir(path) ? blk_errno() : 0;
}

int blk_links(char *dir, const char *port)
{
	return blk_path(dir, PORTS, port, LINKS) ? 0 : -EINVAL;
}

/* Let a port reach a volume. */
int blk_link(const char *port, const char *volume)
{
	char dir[PATH_MAX], path[PATH_MAX], to[PATH_MAX];

	if (blk_links(dir, port) || !blk_path(path, dir, volume, NULL) ||
	    !blk_path(to, VOLUMES, volume, NULL))
		return -EINVAL;
	return symlink(to, path) && errno != EEXIST ? blk_errno() : 0;
}

/* Call @fn for each directory, in no order; false as soon as @fn returns it. */
bool blk_each(const char *dir,
	      bool (*fn)(const char *name, const void *arg),
	      const void *arg)
{
	const struct dirent *e;
	DIR *d = opendir(dir);
	bool go = true;

	while (d && go && (e = readdir(d)))
		if (e->d_name[0] != '.')
			go = fn(e->d_name, arg);
	if (d)
		closedir(d);
	return go;
}

/* The volume that a link of a port leads to; its name may be another one. */
bool blk_linked(char *volume, const char *port, const char *link)
{
	char dir[PATH_MAX], path[PATH_MAX], to[PATH_MAX];
	const char *name;
	ssize_t n = -1;

	if (!blk_links(dir, port) && blk_path(path, dir, link, NULL))
		n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = '\0';
	name = strrchr(to, '/');
	snprintf(volume, TEXT_MAX, "%s", name ? name + 1 : to);
	return true;
}

struct blk_end {
	const char	*port;
	const char	*dir;
	const char	*volume;
};

static bool blk_unlink_one(const char *name, const void *arg)
{
	const struct blk_end *end = arg;
	char volume[TEXT_MAX], path[PATH_MAX];

	if (blk_linked(volume, end->port, name) &&
	    !strcmp(volume, end->volume) && blk_path(path, end->dir, name, NULL))
		unlink(path);
	return true;
}

/* The port no longer reaches the volume. */
bool blk_unlink(const char *port, const void *volume)
{
	char dir[PATH_MAX];
	const struct blk_end end = {
		.port = port, .dir = dir, .volume = volume,
	};

	if (!blk_links(dir, port))
		blk_each(dir, blk_unlink_one, &end);
	return true;
}

/*
 * One at a time, until the program exits: the last volume of a port takes it along.
 * Others cannot open the file, so they cannot keep root waiting.
 */
bool blk_lock(void)
{
	int fd = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0 && !flock(fd, LOCK_EX))
		return true;
	error("cannot lock %s: %s", LOCK, blk_text(blk_errno()));
	return false;
}

/* ------------------------------------------------------------------- checks */

/* Decimal numbers only, although the modules also read octal and hexadecimal ones */
bool blk_number(const char *text, uint64_t min, uint64_t max,
		uint64_t *value)
{
	if (!text)
		return true;
	return (*text != '0' || !text[1]) && parse_number(text, max, value) &&
	       *value >= min;
}

bool blk_word(const char *text, size_t max)
{
	return !text || (*text && strlen(text) <= max &&
			 !text[strcspn(text, " \t\n")]);
}

/* Test whether text is NULL, or the name of a directory that "list" shows. */
bool blk_name(const char *text, size_t max)
{
	return !text || (blk_word(text, max) && *text != '.' &&
			 !strchr(text, '/'));
}

/* Numeric; an interface may follow a % */
bool blk_address(const char *text)
{
	char addr[WORD_LEN + 1];
	unsigned char binary[16];

	if (!text)
		return true;
	if (!blk_word(text, WORD_LEN))
		return false;
	if (inet_pton(AF_INET, text, binary) == 1)
		return true;
	snprintf(addr, sizeof(addr), "%.*s", (int)strcspn(text, "%"), text);
	return inet_pton(AF_INET6, addr, binary) == 1;
}

/* A name in an access list, or the description of a key there */
bool blk_identity(const char *text)
{
	const char *at;

	for (at = text; at && *at; at++)
		if (*at <= ' ' || *at > '~' || strchr(",=", *at))
			return false;
	return blk_word(text, WORD_LEN);
}

/* The words of the attributes "digest" */
bool blk_digest(const char *text)
{
	return !text || !strcmp(text, "off") || !strcmp(text, "optional") ||
	       !strcmp(text, "required");
}

/* id:NAME=DESCRIPTION */
static bool blk_client(char *text)
{
	char *key = strchr(text, '=');

	if (!key)
		return false;
	*key++ = '\0';
	return blk_identity(text + strlen(BLK_ID)) && blk_identity(key);
}

/* ADDRESS[/BITS][,...], id:NAME=DESCRIPTION[,...], all, or none */
bool blk_nets(const char *text)
{
	char net[2 * WORD_LEN + 5], *bits;
	unsigned int nets = 0, ids = 0;
	uint64_t value;
	size_t n;

	if (!text || !strcmp(text, "all") || !strcmp(text, "none"))
		return true;
	for (;; text += n + 1) {
		n = strcspn(text, ",");
		if (n >= sizeof(net) || ++nets > ALLOW_NETS)
			return false;
		snprintf(net, sizeof(net), "%.*s", (int)n, text);
		bits = strchr(net, '/');
		if (!strncmp(net, BLK_ID, strlen(BLK_ID))) {
			ids++;
			if (!blk_client(net))
				return false;
		} else {
			if (bits)
				*bits++ = '\0';
			if (!blk_address(net) ||
			    !blk_number(bits, 0, strchr(net, ':') ? 128 : 32, &value))
				return false;
		}
		/* a list has one kind of clients */
		if (ids && ids != nets)
			return false;
		if (!text[n])
			return true;
	}
}

bool blk_uuid(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	if (!text)
		return true;
	for (i = 0; form[i] && text[i]; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) :
				     text[i] != form[i])
			return false;
	return !form[i] && !text[i];
}
