/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef GUIDE_SERVER_H
#define GUIDE_SERVER_H

int server_start(const char *node, const char *port);
void server_stop(void);

#endif
