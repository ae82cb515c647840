/* SPDX-License-Identifier: GPL-2.0 */
/* What the service manager wants to hear, as sd_notify(3) says it: a datagram to $NOTIFY_SOCKET, if there is one. */
#ifndef QRDMAD_NOTIFY_H
#define QRDMAD_NOTIFY_H

/* Takes the socket's name from the environment, where it is left. */
void notify_start(void);
/* "READY=1" and the like. */
void notify_say(const char *text);

#endif /* QRDMAD_NOTIFY_H */
