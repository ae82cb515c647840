// SPDX-License-Identifier: GPL-2.0
/*
 * Meet the other machine of a run, from inside a guest.
 *
 *   vm-barrier NAME      returns when every machine has come to NAME
 *   vm-put KEY VALUE     publish a value ("-": read it from stdin)
 *   vm-get KEY           wait until KEY is published, print its value
 *
 * Each call takes a free virtio port to the host, sends one line and sleeps
 * in read() until the answer is there (host/broker.py). Works with the link
 * between the machines down. Exit 0, 1 when the other machine has failed, 2
 * for wrong use or no port.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORTS		8
#define VALUE_MAX	16384
#define LINE_MAX_LEN	(2 * VALUE_MAX + 512)

static int port_open(void)
{
	char path[64];
	int fd, i;

	for (i = 0; i < PORTS; i++) {
		snprintf(path, sizeof(path), "/dev/virtio-ports/qrdma.rpc%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != EBUSY)
			break;
	}
	fprintf(stderr, "vmsync: no port to the host: %s\n", strerror(errno));
	return -1;
}

static size_t hex_put(char *out, const unsigned char *in, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		sprintf(out + 2 * i, "%02x", in[i]);
	return 2 * len;
}

static void hex_print(const char *hex)
{
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
		putchar(byte);
		if (!hex[1])
			break;
	}
}

static size_t value_read(unsigned char *buf)
{
	size_t len = 0;
	ssize_t n;

	while (len < VALUE_MAX) {
		n = read(0, buf + len, VALUE_MAX - len);
		if (n <= 0)
			break;
		len += n;
	}
	return len;
}

/* One line of the answer at a time; lines for others are passed over. */
static int answer_wait(int fd, const char *id, char *line)
{
	size_t len = 0, idlen = strlen(id);
	char *end;
	ssize_t n;

	for (;;) {
		n = read(fd, line + len, LINE_MAX_LEN - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		len += n;
		line[len] = '\0';
		while ((end = strchr(line, '\n'))) {
			*end = '\0';
			if (!strncmp(line, id, idlen) && line[idlen] == ' ')
				return 0;
			len -= end + 1 - line;
			memmove(line, end + 1, len + 1);
		}
	}
}

int main(int argc, char **argv)
{
	const char *verb = strrchr(argv[0], '-');
	static unsigned char value[VALUE_MAX];
	static char line[LINE_MAX_LEN];
	size_t len = 0, vlen = 0;
	char id[32], *answer;
	int fd, want;

	verb = verb ? verb + 1 : "";
	want = strcmp(verb, "put") ? 2 : 3;
	if (argc != want) {
		fprintf(stderr, "usage: vm-barrier NAME | vm-put KEY VALUE | vm-get KEY\n");
		return 2;
	}
	if (want == 3) {
		if (!strcmp(argv[2], "-")) {
			vlen = value_read(value);
		} else {
			vlen = strlen(argv[2]);
			if (vlen > VALUE_MAX)
				return 2;
			memcpy(value, argv[2], vlen);
		}
	}
	fd = port_open();
	if (fd < 0)
		return 2;
	snprintf(id, sizeof(id), "%ld", (long)getpid());
	len = snprintf(line, 512, "%s %s %.400s ", id, verb, argv[1]);
	len += hex_put(line + len, value, vlen);
	line[len++] = '\n';
	if (write(fd, line, len) != (ssize_t)len || answer_wait(fd, id, line)) {
		fprintf(stderr, "vmsync: the host does not answer\n");
		return 2;
	}
	answer = line + strlen(id) + 1;
	if (strncmp(answer, "ok", 2)) {
		fprintf(stderr, "vmsync: %s\n", answer);
		return 1;
	}
	if (answer[2] == ' ')
		hex_print(answer + 3);
	return 0;
}
