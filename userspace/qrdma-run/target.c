// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that can be preloaded, and those that cannot (F51). See target.h. Called by: qrdma-run, before it runs one.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "target.h"

/* The kernel follows so many "#!". */
#define SCRIPT_DEPTH	5
#define SCRIPT_LINE	256
#define PHDR_MAX	256
#define INTERP_MAX	512

typedef ElfW(Ehdr) ehdr_t;
typedef ElfW(Phdr) phdr_t;

struct target {
	const char *path;
	int fd;
	struct stat st;
	char *why;
	size_t size;
};

static int refuse(struct target *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct target *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(t->why, t->size, "%s ", t->path);
	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < t->size)
		vsnprintf(t->why + n, t->size - n, fmt, ap);
	va_end(ap);
	return -1;
}

static int check_depth(const char *path, char *why, size_t size, int depth);

/* Rights that a program gets by being run make the dynamic linker deaf. */
static int check_rights(struct target *t)
{
	if (t->st.st_mode & S_ISUID)
		return refuse(t, "is setuid: it would not be preloaded");
	if ((t->st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return refuse(t, "is setgid: it would not be preloaded");
	if (fgetxattr(t->fd, "security.capability", NULL, 0) > 0)
		return refuse(t, "has file capabilities: it would not be preloaded");
	return 0;
}

/* The dynamic linker that this program runs with is the one that the preload was built for. */
static const char *own_interpreter(void)
{
	const phdr_t *ph = (const phdr_t *)getauxval(AT_PHDR);
	size_t i, n = getauxval(AT_PHNUM);
	uintptr_t base = 0;

	for (i = 0; i < n; i++) {
		if (ph[i].p_type == PT_PHDR)
			base = (uintptr_t)ph - ph[i].p_vaddr;
	}
	for (i = 0; i < n; i++) {
		if (ph[i].p_type == PT_INTERP)
			return (const char *)(base + ph[i].p_vaddr);
	}
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int check_interpreter(struct target *t, const char *interp)
{
	const char *own = own_interpreter();
	struct stat st;

	if (stat(interp, &st))
		return refuse(t, "needs the dynamic linker %s, which is not there", interp);
	if (own && strcmp(base_name(own), base_name(interp)))
		return refuse(t, "needs the dynamic linker %s; the preload is for %s", interp, base_name(own));
	return 0;
}

static int check_headers(struct target *t, const ehdr_t *eh)
{
	char interp[INTERP_MAX];
	phdr_t ph;
	size_t i;

	if (eh->e_phentsize != sizeof(ph) || eh->e_phnum > PHDR_MAX)
		return refuse(t, "has program headers that make no sense");
	for (i = 0; i < eh->e_phnum; i++) {
		if (pread(t->fd, &ph, sizeof(ph), eh->e_phoff + i * sizeof(ph)) != sizeof(ph))
			return refuse(t, "is cut off");
		if (ph.p_type != PT_INTERP)
			continue;
		if (!ph.p_filesz || ph.p_filesz > sizeof(interp) ||
		    pread(t->fd, interp, ph.p_filesz, ph.p_offset) != (ssize_t)ph.p_filesz ||
		    interp[ph.p_filesz - 1])
			return refuse(t, "names its dynamic linker in a way that makes no sense");
		return check_interpreter(t, interp);
	}
	return refuse(t, "is statically linked: there is nothing that would load the preload");
}

static int check_elf(struct target *t, const unsigned char *head, size_t len)
{
	ehdr_t eh, own;
	int fd, n;

	if (len < sizeof(eh))
		return refuse(t, "is cut off");
	memcpy(&eh, head, sizeof(eh));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, &own, sizeof(own));
	if (fd >= 0)
		close(fd);
	if (n != sizeof(own))
		return refuse(t, "cannot be compared with qrdma-run itself: /proc is not there");
	if (eh.e_ident[EI_CLASS] != own.e_ident[EI_CLASS])
		return refuse(t, "is a %d-bit program; the preload is a %d-bit one",
			      eh.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32,
			      own.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32);
	if (eh.e_ident[EI_DATA] != own.e_ident[EI_DATA] || eh.e_machine != own.e_machine)
		return refuse(t, "is for another processor");
	if (eh.e_type != ET_EXEC && eh.e_type != ET_DYN)
		return refuse(t, "is no program");
	return check_rights(t) ?: check_headers(t, &eh);
}

static int check_script(struct target *t, char *line, int depth)
{
	char *interp = line + 2, inner[INTERP_MAX + 256];

	interp += strspn(interp, " \t");
	interp[strcspn(interp, " \t\n")] = '\0';
	if (!*interp)
		return refuse(t, "names no interpreter");
	if (depth >= SCRIPT_DEPTH)
		return refuse(t, "is a script of a script of a script: too deep");
	if (check_depth(interp, inner, sizeof(inner), depth + 1))
		return refuse(t, "is a script: %s", inner);
	return 0;
}

static int check_file(struct target *t, int depth)
{
	unsigned char head[SCRIPT_LINE + 1] = {};
	ssize_t len;

	if (fstat(t->fd, &t->st))
		return refuse(t, "cannot be looked at: %s", strerror(errno));
	if (!S_ISREG(t->st.st_mode))
		return refuse(t, "is no file");
	len = pread(t->fd, head, SCRIPT_LINE, 0);
	if (len < 0)
		return refuse(t, "cannot be read: %s", strerror(errno));
	if (len >= 2 && !memcmp(head, "#!", 2))
		return check_script(t, (char *)head, depth);
	if (len >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG))
		return check_elf(t, head, len);
	return refuse(t, "is neither an ELF program nor a script with \"#!\"");
}

static int check_depth(const char *path, char *why, size_t size, int depth)
{
	struct target t = { .path = path, .why = why, .size = size };
	int ret;

	t.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (t.fd < 0)
		return refuse(&t, "cannot be read: %s", strerror(errno));
	ret = check_file(&t, depth);
	close(t.fd);
	return ret;
}

int run_target_check(const char *path, char *why, size_t size)
{
	return check_depth(path, why, size, 0);
}
