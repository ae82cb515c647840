// SPDX-License-Identifier: GPL-2.0
/*
 * qrdma-run: runs an unmodified program with its TCP sockets made AF_QRDMA ones. Checks that the program can be
 * preloaded, writes the rules into the environment, and becomes the program: nothing of the host is changed, and
 * nothing stays behind.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/qrdma.h>
#include "rules.h"
#include "target.h"

/* As those of env(1), nohup(1) and the shell */
#define EXIT_CANNOT	126
#define EXIT_NOT_FOUND	127

#define PRELOAD		"libqrdma-preload.so"
#define PATH_DEFAULT	"/usr/local/bin:/usr/bin:/bin"

static const char usage_text[] =
	"usage: qrdma-run [options] [--] PROGRAM [ARGUMENT...]\n"
	"Runs PROGRAM with its TCP sockets made AF_QRDMA ones: what they carry is sealed, and goes by RDMA.\n\n"
	"  -t, --take SPEC       only sockets bound or connected to SPEC\n"
	"  -l, --leave SPEC      leave sockets bound or connected to SPEC to TCP\n"
	"      --loopback        take loopback addresses too\n"
	"      --fallback=tcp    where there is no AF_QRDMA, go by TCP, in the clear, and say so\n"
	"      --log FILE        append messages to FILE, not to standard error\n"
	"  -v, --verbose         say which sockets are left to TCP\n"
	"  -n, --check           only see whether PROGRAM can be run so\n"
	"  -h, --help\n\n"
	"SPEC is ADDRESS[/BITS][:PORT[-PORT]], [IPV6/BITS]:PORT or :PORT; the first that matches decides.\n"
	"Exit code: that of PROGRAM; 126: it cannot be run so, 127: it is not there, 2: these options are wrong.\n";

enum { OPT_LOOPBACK = 256, OPT_FALLBACK, OPT_LOG };

static const struct option options[] = {
	{ "take", required_argument, NULL, 't' },
	{ "leave", required_argument, NULL, 'l' },
	{ "loopback", no_argument, NULL, OPT_LOOPBACK },
	{ "fallback", required_argument, NULL, OPT_FALLBACK },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "verbose", no_argument, NULL, 'v' },
	{ "check", no_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{}
};

static void die(int code, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

static void die(int code, const char *fmt, ...)
{
	va_list ap;

	fputs("qrdma-run: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

/* What the preload is told; see rules.h */
static char told[RUN_TEXT_MAX];

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *fmt, ...)
{
	size_t at = strlen(told);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(told + at, sizeof(told) - at, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(told) - at)
		die(2, "too many options");
}

static void tell_rule(const char *word, const char *spec)
{
	struct run_rule rule;

	if (strchr(spec, ' ') || run_rule_parse(&rule, spec, false))
		die(2, "'%s' is no address, network or port", spec);
	tell("%s=%s ", word, spec);
}

struct request {
	bool check;
	bool fallback;
	const char *log;
};

static void read_options(struct request *req, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "+t:l:vnh", options, NULL)) != -1) {
		switch (c) {
		case 't':
			tell_rule("take", optarg);
			break;
		case 'l':
			tell_rule("leave", optarg);
			break;
		case OPT_LOOPBACK:
			tell("loopback ");
			break;
		case OPT_FALLBACK:
			if (strcmp(optarg, "tcp"))
				die(2, "there is no fall-back to '%s', only to tcp", optarg);
			req->fallback = true;
			tell("fallback=tcp ");
			break;
		case OPT_LOG:
			req->log = optarg;
			break;
		case 'v':
			tell("verbose ");
			break;
		case 'n':
			req->check = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			exit(2);
		}
	}
}

/* Where messages go: a file, or standard error as long as it is what it is now. */
static void tell_log(const char *log)
{
	char cwd[PATH_MAX];
	struct stat st;

	if (log && *log != '/') {
		if (!getcwd(cwd, sizeof(cwd)))
			die(2, "where am I? %s", strerror(errno));
		tell("log=%s/%s", cwd, log);
	} else if (log) {
		tell("log=%s", log);
	} else if (!fstat(2, &st)) {
		tell("stderr=%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	}
}

/* As execvp() does it */
static void find_program(const char *name, char path[PATH_MAX])
{
	const char *dir = getenv("PATH") ?: PATH_DEFAULT;
	int err = ENOENT;
	struct stat st;
	size_t len;

	if (strchr(name, '/')) {
		if (strlen(name) >= PATH_MAX)
			die(EXIT_CANNOT, "%s: %s", name, strerror(ENAMETOOLONG));
		strcpy(path, name);
		if (!stat(path, &st) && !access(path, X_OK))
			return;
		die(errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT, "%s: %s", name,
		    strerror(errno));
	}
	for (; *name; dir += len + 1) {
		len = strcspn(dir, ":");
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, dir, len ? "/" : "", name) < PATH_MAX) {
			if (!stat(path, &st) && S_ISREG(st.st_mode)) {
				if (!access(path, X_OK))
					return;
				err = EACCES;
			}
		}
		if (!dir[len])
			break;
	}
	die(err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT, "%s: %s", name,
	    err == ENOENT ? "no such program" : strerror(err));
}

/* Next to this program, as in the build directory, or where it was installed. */
static void find_preload(char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		if (slash && snprintf(path, PATH_MAX, "%.*s/" PRELOAD, (int)(slash - self), self) < PATH_MAX &&
		    !access(path, R_OK))
			goto found;
	}
	strcpy(path, QRDMA_LIBDIR "/" PRELOAD);
	if (access(path, R_OK))
		die(EXIT_CANNOT, "%s: %s", path, strerror(errno));
found:
	/* The dynamic linker would take it for two files, and go on without either. */
	if (strpbrk(path, ": "))
		die(EXIT_CANNOT, "%s: a blank or colon in this path cannot be told to the dynamic linker", path);
}

static void set_preload(const char *path)
{
	const char *before = getenv("LD_PRELOAD");
	char *value;

	if (asprintf(&value, before && *before ? "%s:%s" : "%s", path, before) < 0 ||
	    setenv("LD_PRELOAD", value, 1) || setenv(RUN_ENV, told, 1))
		die(EXIT_CANNOT, "out of memory");
	free(value);
}

/* The program would only find out at its first socket(). */
static void check_family(bool fallback)
{
	int fd = socket(AF_QRDMA, SOCK_STREAM | SOCK_CLOEXEC, QRDMA_PROTO_IPV4);

	if (fd < 0 && errno == EAFNOSUPPORT && !fallback)
		die(EXIT_CANNOT, "this kernel has no AF_QRDMA: is the module qrdma there?");
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX], preload[PATH_MAX], why[2 * PATH_MAX];
	struct request req = {};
	struct run_rules rules;

	read_options(&req, argc, argv);
	if (optind >= argc) {
		fputs(usage_text, stderr);
		return 2;
	}
	tell_log(req.log);
	if (run_rules_parse(&rules, told))
		die(2, "too many rules, or too long a name for the log");
	find_program(argv[optind], path);
	if (run_target_check(path, why, sizeof(why)))
		die(EXIT_CANNOT, "%s", why);
	find_preload(preload);
	if (req.check)
		return 0;
	check_family(req.fallback);
	set_preload(preload);
	execv(path, argv + optind);
	die(EXIT_CANNOT, "%s: %s", path, strerror(errno));
}
