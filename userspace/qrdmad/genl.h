/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generic netlink family of linux/qrdma_genl.h, on libmnl. Requests and events have sockets of their own: events
 * that overrun theirs must not take the answer to a request with them, which may be a descriptor.
 */
#ifndef QRDMAD_GENL_H
#define QRDMAD_GENL_H

#include <stdbool.h>
#include <stdint.h>
#include "session.h"

/**
 * struct genl_family - what the kernel calls it at the moment; a module that is loaded anew has new numbers
 * @id: family
 * @group: QRDMA_GENL_MCGRP_AGENT
 */
struct genl_family {
	uint16_t id;
	uint32_t group;
};

struct genl;

/* A socket for requests. 0 or -errno. */
int genl_open(struct genl **genl);
/* NULL is accepted. */
void genl_close(struct genl *genl);
/* 0; -ENOENT: the module is not loaded; -errno. */
int genl_family(struct genl *genl, struct genl_family *family);
/* 0; -EAGAIN: no handshake waits; -errno. */
int genl_accept(struct genl *genl, const struct genl_family *family, struct session_job *job);
/* 0; -EBUSY: there is one; -EPERM: not ours to give; -errno. */
int genl_host_key(struct genl *genl, const struct genl_family *family, const uint8_t *key);

/* Sockets that do not block, for poll(): a descriptor or -errno. */

/* Tells that a handshake waits. */
int genl_events(const struct genl_family *family);
/* Tells that families come and go. */
int genl_watch(void);
/* Read what is there, whatever it says. True: there was something, or it got lost. */
bool genl_drain(int fd);

#endif /* QRDMAD_GENL_H */
