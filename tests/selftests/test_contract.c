// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * Plays the scenes of contract/ over TCP and over AF_QRDMA, and compares what they say. A difference that
 * Documentation/contract.md lists passes, with the values that stand there; one that it does not list fails, and so
 * does one that is listed and not there.
 *
 * Arguments: names of scenes, all when there are none (then what is listed must have been seen, too).
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent.h"
#include "contract/contract.h"

#define TEXT_MAX	65536
#define LISTED_MAX	300
#define SCENE_SECONDS	20
#define ROWS_LEAST	200

static struct scene *scenes, **scenes_tail = &scenes;

struct listed {
	char row[96], tcp[64], qrdma[64];
	bool seen;
};

static struct listed listed[LISTED_MAX];
static int n_listed, rows, differ;

void scene_register(struct scene *scene)
{
	*scenes_tail = scene;
	scenes_tail = &scene->next;
}

/* "| `scene.label` | `tcp` | `qrdma` | why |" */
static void read_listed(void)
{
	char path[4096], line[1024], *word[3], *at;
	FILE *file;

	snprintf(path, sizeof(path), "%s/Documentation/contract.md", getenv("QRDMA_REPO") ?: ".");
	file = fopen(path, "r");
	if (!file) {
		perror(path);
		exit(1);
	}
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "| `", 3))
			continue;
		at = line;
		for (int i = 0; i < 3; i++) {
			word[i] = strsep(&at, "`") && at ? strsep(&at, "`") : NULL;
			if (!word[i] || !at)
				break;
		}
		if (!at || n_listed == LISTED_MAX)
			exit(printf("Bail out! contract.md: %s", line) ? 1 : 1);
		snprintf(listed[n_listed].row, sizeof(listed[0].row), "%s", word[0]);
		snprintf(listed[n_listed].tcp, sizeof(listed[0].tcp), "%s", word[1]);
		snprintf(listed[n_listed].qrdma, sizeof(listed[0].qrdma), "%s", word[2]);
		n_listed++;
	}
	fclose(file);
}

static bool is_listed(const char *row, const char *tcp, const char *qrdma)
{
	for (int i = 0; i < n_listed; i++) {
		if (strcmp(listed[i].row, row) || strcmp(listed[i].tcp, tcp) || strcmp(listed[i].qrdma, qrdma))
			continue;
		listed[i].seen = true;
		return true;
	}
	return false;
}

/* The scene in a process group of its own, so that what it leaves behind ends with it. */
static void play(const struct scene *scene, bool qrdma, bool six, char *text)
{
	size_t len = 0;
	int p[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe(p))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(SCENE_SECONDS);
		dup2(p[1], 1);
		close(p[0]);
		close(p[1]);
		stage_qrdma = qrdma;
		stage_six = six;
		scene->fn();
		fflush(stdout);
		_exit(0);
	}
	close(p[1]);
	waitpid(pid, &status, 0);
	kill(-pid, SIGKILL);
	while (len < TEXT_MAX - 32 && (n = read(p[0], text + len, TEXT_MAX - 32 - len)) > 0)
		len += n;
	close(p[0]);
	text[len] = '\0';
	if (WIFSIGNALED(status))
		sprintf(text + len, "ended-by-signal %d\n", WTERMSIG(status));
}

/* The next line of a scene: its label and value. False: there is none. */
static bool next_line(char **text, char **label, char **value)
{
	char *line = strsep(text, "\n");

	if (!line || !*line)
		return false;
	*label = strsep(&line, " ");
	*value = line ? line : "";
	return true;
}

/* Return: rows that differ and are not listed. */
static int compare(const char *name, char *tcp, char *qrdma)
{
	char *label[2] = {}, *value[2] = {}, row[128];
	bool more[2];
	int bad = 0;

	for (;;) {
		more[0] = next_line(&tcp, &label[0], &value[0]);
		more[1] = next_line(&qrdma, &label[1], &value[1]);
		if (!more[0] && !more[1])
			return bad;
		if (!more[0] || !more[1] || strcmp(label[0], label[1])) {
			printf("# %s: TCP says %s %s, AF_QRDMA %s %s\n", name, more[0] ? label[0] : "nothing",
			       more[0] ? value[0] : "", more[1] ? label[1] : "nothing", more[1] ? value[1] : "");
			return bad + 1;
		}
		rows++;
		if (!strcmp(value[0], value[1]))
			continue;
		differ++;
		snprintf(row, sizeof(row), "%s.%s", name, label[0]);
		if (is_listed(row, value[0], value[1]))
			continue;
		printf("# | `%s` | `%s` | `%s` | |\n", row, value[0], value[1]);
		bad++;
	}
}

static bool wanted(const struct scene *scene, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], scene->name))
			return true;
	}
	return argc < 2;
}

static bool trustworthy(const char *text)
{
	return !strstr(text, "gave-up") && !strstr(text, "ended-by-signal");
}

static int play_both(const struct scene *scene, bool six)
{
	static char tcp[TEXT_MAX], qrdma[TEXT_MAX];
	bool good;

	play(scene, false, six, tcp);
	play(scene, true, six, qrdma);
	if (getenv("CONTRACT_VERBOSE"))
		printf("# TCP\n%s# AF_QRDMA\n%s", tcp, qrdma);
	/* Both in the same way is no agreement. */
	good = trustworthy(tcp) && trustworthy(qrdma);
	return compare(scene->name, tcp, qrdma) + !good;
}

/* All that is listed is there. */
static int unseen(void)
{
	int bad = 0;

	for (int i = 0; i < n_listed; i++) {
		if (listed[i].seen)
			continue;
		printf("# listed and not there: %s: %s, %s\n", listed[i].row, listed[i].tcp, listed[i].qrdma);
		bad++;
	}
	return bad;
}

static int tap(int n, int bad, const char *name, const char *how)
{
	printf("%sok %d - %s%s\n", bad ? "not " : "", n, name, how);
	fflush(stdout);
	return !!bad;
}

int main(int argc, char **argv)
{
	int n = 0, failed = 0, plan = 0;
	const struct end_options opt = { .seed = end_fresh_seed() };
	struct agent_daemon *agent;
	struct scene *s;

	read_listed();
	agent = agent_start(&opt);
	if (!agent) {
		printf("Bail out! no agent\n");
		return 1;
	}
	for (s = scenes; s; s = s->next)
		plan += 2 * wanted(s, argc, argv);
	printf("TAP version 13\n1..%d\n", plan + 2 * (argc < 2));
	for (s = scenes; s; s = s->next) {
		if (!wanted(s, argc, argv))
			continue;
		failed |= tap(++n, play_both(s, false), s->name, "");
		failed |= tap(++n, play_both(s, true), s->name, "-ipv6");
	}
	printf("# %d rows compared, %d differ\n", rows, differ);
	if (argc < 2) {
		failed |= tap(++n, rows < ROWS_LEAST, "rows", "");
		failed |= tap(++n, unseen(), "listed", "");
	}
	agent_stop(agent);
	return failed;
}
