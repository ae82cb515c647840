// SPDX-License-Identifier: GPL-2.0
/*
 * qrdmad: runs the handshakes of programs on AF_QRDMA that know nothing of them, under the administrator's policy.
 * Documentation/qrdmad.md. The master (master.c) makes workers (worker.c); each takes handshakes from the kernel
 * (genl.c), finds the policy for the peer (policy.c) and runs libqrdma (session.c). Each process is one thread.
 */
#include <errno.h>
#include <getopt.h>
#include <qrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "master.h"
#include "notify.h"
#include "rights.h"

#define DEFAULT_CONFIG	"/etc/qrdma/qrdmad.conf"

static const char usage_text[] =
	"usage: qrdmad [options]\n"
	"Runs the TLS handshakes of AF_QRDMA sockets whose programs run none.\n\n"
	"  -c, --config FILE   configuration (default: " DEFAULT_CONFIG ")\n"
	"      --check         read the configuration and all that it names, tell what is wrong, and exit\n"
	"  -v, --verbose       log the begin of each handshake, and those that succeed, too\n"
	"  -h, --help          this text\n"
	"  -V, --version       version\n"
	"SIGHUP reloads the configuration; SIGTERM ends it when its handshakes are over.\n";

enum { OPT_CHECK = 256 };

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 }
};

struct options {
	const char *file;
	bool check;
};

static void parse(struct options *opt, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "c:vhV", long_options, NULL)) != -1) {
		switch (c) {
		case 'c':
			opt->file = optarg;
			break;
		case OPT_CHECK:
			opt->check = true;
			break;
		case 'v':
			log_set_level(LOG_DEBUG);
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		case 'V':
			printf("qrdmad %s\n", qrdma_version());
			exit(0);
		default:
			fputs("Try 'qrdmad --help'.\n", stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "qrdmad: there are no arguments but options\nTry 'qrdmad --help'.\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct options opt = { .file = DEFAULT_CONFIG };
	char why[CONFIG_WHY_SIZE];
	struct policies *policies = NULL;
	struct config *config = NULL;
	struct rights_user user;
	int err;

	parse(&opt, argc, argv);
	/* as systemd tells that it understands them */
	log_set_prefix(getenv("JOURNAL_STREAM"));
	notify_start();
	/* before the first file is read: what cannot be read so, could not be on a reload */
	err = rights_master();
	if (err) {
		log_line(LOG_ERROR, "cannot give up rights: %s", strerror(-err));
		return 1;
	}
	err = config_load(&config, opt.file, why);
	if (!err)
		err = policies_new(&policies, config, why);
	if (!err && opt.check && rights_user(&user, config->user)) {
		snprintf(why, sizeof(why), "[qrdmad] user: there is no user '%s'", config->user);
		err = -ENOENT;
	}
	if (err) {
		if (opt.check)
			fprintf(stderr, "%s: %s\n", opt.file, why);
		else
			log_line(LOG_ERROR, "%s: %s", opt.file, why);
	}
	if (err || opt.check) {
		policies_free(policies);
		config_free(config);
		return err ? 1 : 0;
	}
	return master_run(opt.file, config, policies);
}
