// SPDX-License-Identifier: GPL-2.0
/*
 * qrdma-run and its preload: rules, targets that cannot be preloaded, and run_program.c run by it in front of
 * run_record.c. argv[1]: folder made by certs.sh, next to which stands "run" with the programs.
 */
#include <arpa/inet.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common.h"
#include "rules.h"
#include "target.h"

#define OUT_MAX		16384

typedef ElfW(Ehdr) ehdr_t;
typedef ElfW(Phdr) phdr_t;

static const char *built;	/* folder of the programs */
static char tmp[] = "/tmp/qrdma-run-XXXXXX";

/*
 * Rules
 */

static bool rule(const char *text, const char *addr, int port, bool bind)
{
	struct sockaddr_storage sa = {};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;
	struct run_rules rules;

	if (run_rules_parse(&rules, text))
		return false;
	if (strchr(addr, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, addr, &in6->sin6_addr);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		inet_pton(AF_INET, addr, &in->sin_addr);
	}
	return bind ? run_rules_take_bind(&rules, (struct sockaddr *)&sa) :
		      run_rules_take_connect(&rules, (struct sockaddr *)&sa);
}

static const struct {
	const char *rules;
	const char *addr;
	int port;
	bool bind;
	bool take;
} decisions[] = {
	{ "", "10.9.0.1", 80, false, true },
	{ "", "fd09::1", 80, false, true },
	{ "", "127.0.0.1", 80, false, false },
	{ "", "127.255.0.9", 80, false, false },
	{ "", "::1", 80, false, false },
	{ "", "::ffff:127.0.0.1", 80, false, false },
	{ "", "::ffff:10.9.0.1", 80, false, true },
	{ "", "0.0.0.0", 80, false, false },
	{ "", "::", 80, false, false },
	{ "", "0.0.0.0", 80, true, true },
	{ "", "::", 80, true, true },
	{ "", "127.0.0.1", 80, true, false },
	{ "loopback", "127.0.0.1", 80, true, true },
	{ "loopback", "0.0.0.0", 80, false, true },
	{ "leave=:22", "10.9.0.1", 22, true, false },
	{ "leave=:22", "10.9.0.1", 23, true, true },
	{ "leave=*:20-22", "::", 21, true, false },
	{ "leave=10.9.0.0/24", "10.9.0.200", 80, false, false },
	{ "leave=10.9.0.0/24", "10.9.1.200", 80, false, true },
	{ "leave=10.9.0.0/23", "10.9.1.200", 80, false, false },
	{ "leave=10.9.0.0/24", "::ffff:10.9.0.200", 80, false, false },
	{ "leave=0.0.0.0/0", "fd09::1", 80, false, true },
	{ "leave=0.0.0.0/0", "10.9.0.1", 80, false, false },
	{ "leave=fd09::/16", "fd09:1::1", 80, false, false },
	{ "leave=[fd09::1]:80", "fd09::1", 80, false, false },
	{ "leave=[fd09::1]:80", "fd09::1", 81, false, true },
	{ "leave=[fd09::/64]:80-90", "fd09::2", 90, false, false },
	{ "leave=fd09::1", "fd09::2", 90, false, true },
	{ "take=:6379", "10.9.0.1", 6379, false, true },
	{ "take=:6379", "10.9.0.1", 80, false, false },
	{ "take=:6379", "0.0.0.0", 6379, true, true },
	{ "take=:6379", "10.9.0.1", 0, true, true },
	{ "take=:6379", "127.0.0.1", 0, true, false },
	{ "take=:6379", "127.0.0.1", 6379, false, true },
	{ "leave=127.0.0.0/8 take=:6379", "127.0.0.1", 6379, false, false },
	{ "leave=10.9.0.7:80 take=10.9.0.0/24", "10.9.0.7", 80, false, false },
	{ "leave=10.9.0.7:80 take=10.9.0.0/24", "10.9.0.7", 81, false, true },
	{ "take=10.9.0.0/24", "10.8.0.7", 81, false, false },
};

static void test_rules(void)
{
	static const char *const wrong[] = {
		"take=", "take=10.9.0", "take=10.9.0.1/33", "take=10.9.0.1:0", "take=10.9.0.1:65536", "take=:9-8",
		"take=[fd09::1", "take=[fd09::1]80", "take=fd09::1/129", "take=:", "take=10.9.0.1:x", "take=a.b",
		"take=10.9.0.1/-1", "fallback", "fallback=udp", "log=here", "stderr=1", "stderr=1:x", "nonsense",
	};
	struct run_rules rules;
	char name[80], many[RUN_TEXT_MAX + 1] = "";
	size_t i;

	for (i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
		bool take = rule(decisions[i].rules, decisions[i].addr, decisions[i].port, decisions[i].bind);

		snprintf(name, sizeof(name), "rules: '%s' %s %s:%d", decisions[i].rules,
			 decisions[i].bind ? "bind" : "connect", decisions[i].addr, decisions[i].port);
		check(take == decisions[i].take, name, take ? "taken" : "left");
	}
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(name, sizeof(name), "rules: '%s' is refused", wrong[i]);
		check(run_rules_parse(&rules, wrong[i]) == -1, name, "");
	}
	check(!run_rules_parse(&rules, "take=:1  verbose stderr=5:7 log=/a b=c") && !strcmp(rules.log, "/a b=c") &&
	      rules.err_dev == 5 && rules.err_ino == 7 && rules.verbose, "rules: all words", rules.log);
	for (i = 0; i <= RUN_RULES_MAX; i++)
		strcat(many, "leave=:1 ");
	check(run_rules_parse(&rules, many) == -1, "rules: too many", "");
	memset(many, ' ', sizeof(many) - 1);
	check(run_rules_parse(&rules, many) == -1, "rules: too long", "");
}

/*
 * Files
 */

static const char *in_tmp(const char *name)
{
	static char buf[8][PATH_MAX];
	static int n;
	char *at = buf[n++ % 8];

	snprintf(at, PATH_MAX, "%s/%s", tmp, name);
	return at;
}

static const char *in_built(const char *name)
{
	static char buf[8][PATH_MAX];
	static int n;
	char *at = buf[n++ % 8];

	snprintf(at, PATH_MAX, "%s/%s", built, name);
	return at;
}

static void write_file(const char *path, const void *data, size_t len, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, mode)) {
		perror(path);
		exit(1);
	}
	close(fd);
}

static char *read_file(const char *path, size_t *len)
{
	static char data[1 << 22];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	*len = 0;
	while (fd >= 0 && *len < sizeof(data)) {
		n = read(fd, data + *len, sizeof(data) - *len);
		if (n <= 0)
			break;
		*len += n;
	}
	if (fd >= 0)
		close(fd);
	return data;
}

static void refused(const char *path, const char *because, const char *name)
{
	char why[PATH_MAX * 2] = "accepted";
	bool good = run_target_check(path, why, sizeof(why)) == -1 && strstr(why, because) && strstr(why, path);

	check(good, name, why);
}

static void accepted(const char *path, const char *name)
{
	char why[PATH_MAX * 2] = "";

	check(!run_target_check(path, why, sizeof(why)), name, why);
}

/* A copy of run_program in which the linker's name is another one */
static void other_linker(const char *to, const char *linker)
{
	size_t len, i;
	char *data = read_file(in_built("run_program"), &len);
	ehdr_t *eh = (ehdr_t *)data;
	phdr_t *ph = (phdr_t *)(data + eh->e_phoff);

	for (i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_INTERP && strlen(linker) < ph[i].p_filesz) {
			strcpy(data + ph[i].p_offset, linker);
			ph[i].p_filesz = strlen(linker) + 1;
		}
	}
	write_file(to, data, len, 0755);
}

static void test_rights(const char *data, size_t len)
{
	static const unsigned char cap[20] = { 0, 0, 0, 2, 0, 4 };	/* VFS_CAP_REVISION_2, CAP_NET_BIND_SERVICE */

	write_file(in_tmp("setuid"), data, len, 04755);
	refused(in_tmp("setuid"), "setuid", "target: setuid");
	write_file(in_tmp("setgid"), data, len, 02755);
	refused(in_tmp("setgid"), "setgid", "target: setgid");
	write_file(in_tmp("caps"), data, len, 0755);
	if (setxattr(in_tmp("caps"), "security.capability", cap, sizeof(cap), 0))
		check(true, "target: file capabilities # SKIP cannot be set here", "");
	else
		refused(in_tmp("caps"), "file capabilities", "target: file capabilities");
}

static void script(const char *name, const char *line)
{
	write_file(in_tmp(name), line, strlen(line), 0755);
}

static void test_targets(void)
{
	char line[PATH_MAX + 16], *data;
	size_t len;

	accepted(in_built("run_program"), "target: a dynamic program");
	refused(in_built("run_static"), "statically linked", "target: a static program");
	refused(in_tmp("nothing"), "No such file", "target: nothing");
	refused(tmp, "no file", "target: a directory");
	data = read_file(in_built("run_program"), &len);
	test_rights(data, len);
	write_file(in_tmp("short"), data, 40, 0755);
	refused(in_tmp("short"), "cut off", "target: cut off in its header");
	write_file(in_tmp("short"), data, 70, 0755);
	refused(in_tmp("short"), "cut off", "target: cut off behind it");
	data[EI_CLASS] ^= ELFCLASS32 ^ ELFCLASS64;
	write_file(in_tmp("class"), data, len, 0755);
	refused(in_tmp("class"), "-bit", "target: foreign ELF class");
	data = read_file(in_built("run_program"), &len);
	((ehdr_t *)data)->e_machine = EM_SPARC;
	write_file(in_tmp("machine"), data, len, 0755);
	refused(in_tmp("machine"), "another processor", "target: another machine");
	data = read_file(in_built("run_program"), &len);
	((ehdr_t *)data)->e_phnum = 0xfff0;
	write_file(in_tmp("headers"), data, len, 0755);
	refused(in_tmp("headers"), "no sense", "target: headers without sense");
	other_linker(in_tmp("linker"), "/lib/no-such.so");
	refused(in_tmp("linker"), "is not there", "target: missing interpreter");
	other_linker(in_tmp("linker"), "/bin/sh");
	refused(in_tmp("linker"), "the preload is for", "target: another C library");
	script("empty", "");
	refused(in_tmp("empty"), "neither", "target: an empty file");

	script("shell", "#! /bin/sh -e\nexit 0\n");
	accepted(in_tmp("shell"), "target: a script");
	script("gone", "#!/no/such/shell\n");
	refused(in_tmp("gone"), "No such file", "target: a script without its interpreter");
	script("none", "#!\t\n");
	refused(in_tmp("none"), "no interpreter", "target: a script that names none");
	snprintf(line, sizeof(line), "#!%s arg\n", in_built("run_static"));
	script("static", line);
	refused(in_tmp("static"), "statically linked", "target: a script of a static program");
	snprintf(line, sizeof(line), "#!%s\n", in_tmp("loop"));
	script("loop", line);
	refused(in_tmp("loop"), "too deep", "target: a script of itself");
}

/*
 * Runs
 */

static char said[OUT_MAX];
static size_t said_len;

static void read_all(int fd)
{
	ssize_t n;

	said_len = 0;
	while (said_len < sizeof(said) - 1 && (n = read(fd, said + said_len, sizeof(said) - 1 - said_len)) > 0)
		said_len += n;
	said[said_len] = '\0';
}

/* qrdma-run ARGUMENTS..., behind it the recorder. Return: exit status; what it said is in said. */
static int run(const char *arg, ...)
{
	const char *argv[32] = { in_built("qrdma-run"), arg };
	int n = 1, p[2], status;
	va_list ap;
	pid_t pid;

	va_start(ap, arg);
	while (argv[n] && n < 31)
		argv[++n] = va_arg(ap, const char *);
	va_end(ap);
	if (pipe(p))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(p[1], 1);
		dup2(p[1], 2);
		close(p[0]);
		close(p[1]);
		setenv("LD_PRELOAD", in_built("librun_record.so"), 1);
		execv(argv[0], (char **)argv);
		_exit(99);
	}
	close(p[1]);
	read_all(p[0]);
	close(p[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void exits(int status, int want, const char *says, const char *name)
{
	check(status == want && (!says || strstr(said, says)), name, said);
}

static void test_args(const char *prog)
{
	static const char want[] = "a b\0\0'\"\0x\ny\0--take\0\x01\xff\0$HOME `id`\0";

	exits(run("--", prog, "args", "a b", "", "'\"", "x\ny", "--take", "\x01\xff", "$HOME `id`", NULL), 0, NULL,
	      "run: arguments");
	check(said_len == sizeof(want) - 1 && !memcmp(said, want, said_len), "run: byte for byte", said);
}

static void test_exits(const char *prog)
{
	exits(run(prog, "nonsense", NULL), 2, NULL, "run: the program's exit code");
	exits(run("no-such-program-here", NULL), 127, "no such program", "run: not in PATH");
	exits(run("/no/such/program", NULL), 127, "No such file", "run: no such file");
	exits(run(tmp, NULL), 126, NULL, "run: a directory");
	exits(run(in_built("run_static"), NULL), 126, "statically linked", "run: a static program");
	exits(run(in_tmp("setuid"), NULL), 126, "setuid", "run: a setuid program");
	exits(run(in_tmp("static"), NULL), 126, "statically linked", "run: a script of a static program");
	exits(run("--check", prog, NULL), 0, NULL, "run: only a check");
	exits(run(NULL), 2, "usage", "run: nothing");
	exits(run("--take", "nowhere", prog, NULL), 2, "'nowhere'", "run: a wrong rule");
	exits(run("--fallback=udp", prog, NULL), 2, "only to tcp", "run: another fall-back");
	exits(run("sh", "-c", "exit 7", NULL), 7, NULL, "run: a program in PATH");
}

static void test_log(const char *prog)
{
	const char *log = in_tmp("log file");
	size_t len;
	char *data;

	setenv("RECORD_ABSENT", "1", 1);
	exits(run(prog, "refused", NULL), 126, "no AF_QRDMA", "run: no module");
	exits(run("--fallback=tcp", "--loopback", prog, "falls", NULL), 0, "no AF_QRDMA; 1 in this process",
	      "fallback: no module, told on standard error");
	exits(run("--fallback=tcp", "--loopback", "--log", log, prog, "falls", NULL), 0, NULL, "fallback: with a log");
	data = read_file(log, &len);
	data[len] = '\0';
	check(strstr(data, "run_program: socket falls back to TCP") && !*said, "fallback: told in the log", data);
	exits(run("--fallback=tcp", "--loopback", prog, "stderr", in_tmp("mine"), NULL), 0, NULL,
	      "fallback: a descriptor 2 of the program's own is left alone");
	unsetenv("RECORD_ABSENT");

	setenv("RECORD_REASON", "3", 1);
	exits(run("--fallback=tcp", "--loopback", prog, "falls", NULL), 0, "reason 3", "fallback: no service there");
	exits(run("--loopback", prog, "refused", NULL), 0, NULL, "fallback: not asked for");
	setenv("RECORD_REASON", "15", 1);
	exits(run("--fallback=tcp", "--loopback", prog, "refused", NULL), 0, NULL,
	      "fallback: never behind a handshake that failed");
	check(!*said, "fallback: none, none told", said);
	unsetenv("RECORD_REASON");
}

/* The preload without qrdma-run, and with rules that it does not know */
static void test_environment(const char *prog)
{
	const char *shell = "exec env QRDMA_RUN='nonsense' \"$0\" refused";

	exits(run("sh", "-c", shell, prog, NULL), 1, NULL, "preload: rules that it does not know are no rules");
	exits(run("sh", "-c", "unset QRDMA_RUN; exec \"$0\" carry", prog, NULL), 0, NULL, "preload: without rules");
}

static void test_runs(void)
{
	static const char *const plain[] = { "sockets", "threads", "closefds", "carry", "stay" };
	char *prog = strdup(in_built("run_program"));
	char name[64];
	size_t i;

	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		snprintf(name, sizeof(name), "program: %s", plain[i]);
		exits(run(prog, plain[i], NULL), 0, NULL, name);
	}
	exits(run("--loopback", prog, "forks", NULL), 0, NULL, "program: forks");
	exits(run("-v", prog, "stay", NULL), 0, "is left to TCP at connect()", "program: told what is left");
	exits(run("sh", "-c", "\"$0\" sockets", prog, NULL), 0, NULL, "program: of a shell");
	test_args(prog);
	test_exits(prog);
	test_log(prog);
	test_environment(prog);
	free(prog);
}

int main(int argc, char **argv)
{
	static char folder[PATH_MAX];

	test_start(argc, argv);
	if (!realpath(path("../run"), folder) || !mkdtemp(tmp))
		return 1;
	built = folder;
	setenv("HOME", tmp, 1);
	test_rules();
	test_targets();
	test_runs();
	if (system("rm -r \"$HOME\""))
		return 1;
	return test_end();
}
