#include "planner/policy/policy_wire.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/process/clock.h"

bool wire_send(int socket, const void *data, size_t bytes)
{
    const char *next = data;
    while (bytes > 0) {
        const ssize_t sent = send(socket, next, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        next += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

/* `until_s`: of clock_s(); HUGE_VAL: however long it takes. */
static enum wire_end receive_until(int socket, void *data, size_t bytes, double until_s)
{
    char *next = data;
    while (bytes > 0) {
        const double left_s = until_s - clock_s();
        struct pollfd waiting = {.fd = socket, .events = POLLIN};
        const int ready = poll(&waiting, 1, left_s > 1e6 ? -1 : left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return WIRE_LATE;
        const ssize_t got = ready < 0 ? -1 : recv(socket, next, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return WIRE_CLOSED;
        next += got;
        bytes -= (size_t)got;
    }
    return WIRE_WHOLE;
}

bool wire_receive(int socket, void *data, size_t bytes)
{
    return receive_until(socket, data, bytes, HUGE_VAL) == WIRE_WHOLE;
}

static bool is_hello(const struct wire_hello *hello)
{
    if (hello->status >= STATUS_COUNT || hello->searched > 1 || hello->resident > 1 || hello->one_device > 1 ||
        !memchr(hello->error, '\0', sizeof hello->error) || !memchr(hello->name, '\0', sizeof hello->name))
        return false;
    if (hello->status != STATUS_OK) return hello->error[0] != '\0';
    return policy_name_is_good(hello->name) && (!hello->resident || hello->seats_max > 0);
}

enum wire_end wire_receive_hello(int socket, double within_s, struct wire_hello *out)
{
    const enum wire_end came = receive_until(socket, out, sizeof *out, clock_s() + within_s);
    return came != WIRE_WHOLE || is_hello(out) ? came : WIRE_WRONG;
}

enum wire_end wire_receive_answer(int socket, double within_s, struct wire_answer *out)
{
    const enum wire_end came = receive_until(socket, out, sizeof *out, clock_s() + within_s);
    return came != WIRE_WHOLE || (out->chose <= 1 && out->failed <= 1) ? came : WIRE_WRONG;
}
