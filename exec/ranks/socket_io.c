#include "exec/ranks/socket_io.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/try.h"

enum { BACKLOG = 512, ADDRESS_BYTES = 256 };
static const double RETRY_S = 0.02;

/* Divides "HOST:PORT" or "[HOST]:PORT". */
static enum status resolve(const char *address, bool listens, struct addrinfo **out, struct error *err)
{
    char host[ADDRESS_BYTES];
    const char *const colon = strrchr(address, ':');
    if (!colon || colon == address || !colon[1] || strlen(address) >= sizeof host)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' is no address (expected HOST:PORT)", address);
    const bool bracketed = address[0] == '[' && colon[-1] == ']';
    const size_t length = (size_t)(colon - address) - (bracketed ? 2 : 0);
    memcpy(host, address + (bracketed ? 1 : 0), length);
    host[length] = '\0';
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0)};
    if (strspn(colon + 1, "0123456789") != strlen(colon + 1) || strtoul(colon + 1, NULL, 10) > UINT16_MAX)
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' has no port (expected a number up to %d)", address,
                         UINT16_MAX);
    const int failed = getaddrinfo(host, colon + 1, &hints, out);
    if (failed)
        return error_set(err, failed == EAI_SERVICE ? STATUS_BAD_INPUT : STATUS_DEVICE, "the address '%.100s': %s",
                         address, gai_strerror(failed));
    return STATUS_OK;
}

static uint32_t port_of(int socket)
{
    struct sockaddr_storage at = {0};
    socklen_t length = sizeof at;
    if (getsockname(socket, (struct sockaddr *)&at, &length) != 0) return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&at)->sin6_port
                                          : ((const struct sockaddr_in *)&at)->sin_port);
}

static int listen_at(const struct sockaddr *at, socklen_t length)
{
    const int yes = 1, made = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(made, at, length) == 0 && listen(made, BACKLOG) == 0) return made;
    const int why = errno;
    close(made);
    errno = why;
    return -1;
}

enum status socket_listen(const char *address, int *out, uint32_t *port, struct error *err)
{
    struct addrinfo *found = NULL;
    TRY(resolve(address, true, &found, err));
    *out = -1;
    for (const struct addrinfo *at = found; at && *out < 0; at = at->ai_next)
        *out = listen_at(at->ai_addr, at->ai_addrlen);
    const int why = errno;
    freeaddrinfo(found);
    if (*out < 0) return error_set(err, STATUS_DEVICE, "cannot listen at '%.100s': %s", address, strerror(why));
    *port = port_of(*out);
    return STATUS_OK;
}

enum status socket_listen_beside(int beside, int *out, uint32_t *port, struct error *err)
{
    struct sockaddr_storage at = {0};
    socklen_t length = sizeof at;
    *out = -1;
    if (getsockname(beside, (struct sockaddr *)&at, &length) == 0) {
        if (at.ss_family == AF_INET6) ((struct sockaddr_in6 *)&at)->sin6_port = 0;
        else ((struct sockaddr_in *)&at)->sin_port = 0;
        *out = listen_at((const struct sockaddr *)&at, length);
    }
    if (*out < 0) return error_set(err, STATUS_DEVICE, "cannot listen for other ranks: %s", strerror(errno));
    *port = port_of(*out);
    return STATUS_OK;
}

/* Waits until the socket can be read or written. Returns false at the deadline. */
static bool await_socket(int socket, short events, double until_s)
{
    for (;;) {
        const double left_s = until_s - clock_s();
        struct pollfd one = {.fd = socket, .events = events};
        const int count = poll(&one, 1, left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
        if (count > 0) return true;
        if (count == 0 || errno != EINTR) return false;
    }
}

static int connect_at(const struct addrinfo *at, double until_s)
{
    const int yes = 1, made = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int why = 0;
    socklen_t length = sizeof why;
    if (made < 0) return -1;
    if (connect(made, at->ai_addr, at->ai_addrlen) != 0) {
        why = errno;
        if (why == EINPROGRESS) {
            why = ETIMEDOUT;
            if (await_socket(made, POLLOUT, until_s) && getsockopt(made, SOL_SOCKET, SO_ERROR, &why, &length) != 0)
                why = errno;
        }
    }
    if (why == 0) {
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        return made;
    }
    close(made);
    errno = why;
    return -1;
}

enum status socket_connect(const char *address, double until_s, int *out, struct error *err)
{
    struct addrinfo *found = NULL;
    int why = 0;
    TRY(resolve(address, false, &found, err));
    *out = -1;
    do {
        if (why != 0) nanosleep(&(struct timespec){.tv_nsec = (long)(RETRY_S * 1e9)}, NULL);
        for (const struct addrinfo *at = found; at && *out < 0; at = at->ai_next) *out = connect_at(at, until_s);
        why = errno;
    } while (*out < 0 && clock_s() < until_s);
    freeaddrinfo(found);
    if (*out >= 0) return STATUS_OK;
    return error_set(err, STATUS_DEVICE, "'%.100s' does not answer: %s", address, strerror(why));
}

int socket_accept(int listening, double until_s, char host[SOCKET_HOST_BYTES])
{
    struct sockaddr_storage at = {0};
    socklen_t length = sizeof at;
    const int yes = 1;
    if (!await_socket(listening, POLLIN, until_s)) return -1;
    const int made = accept4(listening, (struct sockaddr *)&at, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (made < 0) return -1;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (host &&
        getnameinfo((const struct sockaddr *)&at, length, host, SOCKET_HOST_BYTES, NULL, 0, NI_NUMERICHOST) != 0)
        host[0] = '\0';
    return made;
}

bool socket_read_all(int socket, void *to, size_t bytes, double until_s)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t count = recv(socket, (char *)to + done, bytes - done, 0);
        if (count > 0) {
            done += (size_t)count;
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            return false;
        } else if (!await_socket(socket, POLLIN, until_s)) {
            return false;
        }
    }
    return true;
}

bool socket_write_all(int socket, const void *from, size_t bytes, double until_s)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t count = send(socket, (const char *)from + done, bytes - done, MSG_NOSIGNAL);
        if (count > 0) {
            done += (size_t)count;
        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        } else if (!await_socket(socket, POLLOUT, until_s)) {
            return false;
        }
    }
    return true;
}

void socket_close(int *socket)
{
    if (*socket >= 0) close(*socket);
    *socket = -1;
}
