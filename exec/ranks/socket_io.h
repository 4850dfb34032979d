/* TCP sockets with deadlines, times of clock_s(). */
#ifndef SPILLWAY_EXEC_RANKS_SOCKET_IO_H
#define SPILLWAY_EXEC_RANKS_SOCKET_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SOCKET_HOST_BYTES = 64 };

/* Listens at HOST:PORT. *port: the port, also of one that ends in ":0". Errors: STATUS_BAD_INPUT for an address that is
 * none, STATUS_DEVICE. */
MUST_CHECK enum status socket_listen(const char *address, int *out, uint32_t *port, struct error *err);

/* Listens at a free port of the address that the socket has here. */
MUST_CHECK enum status socket_listen_beside(int socket, int *out, uint32_t *port, struct error *err);

/* Connects; tries again while nothing listens there, until the deadline. */
MUST_CHECK enum status socket_connect(const char *address, double until_s, int *out, struct error *err);

/* Accepts a connection. Returns -1 at the deadline. `host`: the other's numeric address; may be NULL. */
int socket_accept(int listening, double until_s, char host[SOCKET_HOST_BYTES]);

/* Return false at the deadline, or when the connection ended. */
bool socket_read_all(int socket, void *to, size_t bytes, double until_s);
bool socket_write_all(int socket, const void *from, size_t bytes, double until_s);

/* Closes it unless it is -1, and makes it -1. */
void socket_close(int *socket);

#endif
