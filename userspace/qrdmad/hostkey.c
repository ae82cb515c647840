// SPDX-License-Identifier: GPL-2.0
/* See hostkey.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hostkey.h"

#define TEXT_LEN	(2 * HOSTKEY_LEN)

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static int hostkey_read(const char *file, uint8_t key[HOSTKEY_LEN])
{
	char text[TEXT_LEN + 2];
	struct stat st;
	ssize_t n;
	int err = 0;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text));
	if (n < 0 || fstat(fd, &st))
		err = -errno;
	else if (st.st_mode & (S_IRWXG | S_IRWXO))
		err = -EACCES;
	else if (n < TEXT_LEN || n > TEXT_LEN + 1 || (n == TEXT_LEN + 1 && text[TEXT_LEN] != '\n'))
		err = -EINVAL;
	for (int i = 0; i < HOSTKEY_LEN && !err; i++) {
		int high = digit(text[2 * i]);
		int low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			err = -EINVAL;
		else
			key[i] = high << 4 | low;
	}
	explicit_bzero(text, sizeof(text));
	close(fd);
	return err;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= n;
		}
	}
	return fsync(fd) ? -errno : 0;
}

/* The folder of the file; that it could not be made is found out with the file. */
static void make_place(const char *file)
{
	const char *end = strrchr(file, '/');
	char *dir = end && end > file ? strndup(file, end - file) : NULL;

	if (dir)
		mkdir(dir, 0700);
	free(dir);
}

/* It appears whole or not at all, and never in place of another's. */
static int hostkey_write(const char *file, const uint8_t key[HOSTKEY_LEN])
{
	char text[TEXT_LEN + 2];
	char *temp;
	int err = 0;
	int fd;

	if (asprintf(&temp, "%s.%d", file, getpid()) < 0)
		return -ENOMEM;
	for (int i = 0; i < HOSTKEY_LEN; i++)
		sprintf(text + 2 * i, "%02x", key[i]);
	text[TEXT_LEN] = '\n';
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
	} else {
		err = write_all(fd, text, TEXT_LEN + 1);
		close(fd);
		if (!err && link(temp, file))
			err = -errno;
		unlink(temp);
	}
	explicit_bzero(text, sizeof(text));
	free(temp);
	return err;
}

int hostkey_load(const char *file, uint8_t key[HOSTKEY_LEN], bool *made)
{
	int err = hostkey_read(file, key);

	*made = false;
	if (err != -ENOENT)
		return err;
	if (getrandom(key, HOSTKEY_LEN, 0) != HOSTKEY_LEN)
		return -EIO;
	make_place(file);
	err = hostkey_write(file, key);
	/* another one was quicker */
	if (err == -EEXIST)
		return hostkey_read(file, key);
	*made = !err;
	return err;
}
