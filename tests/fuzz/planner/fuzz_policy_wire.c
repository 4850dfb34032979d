/*
 * Any bytes from the process of a user's policy on the executor's socket: a hello and answers, each whole and valid, or
 * reported as wrong or cut off.
 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "planner/policy/policy_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 16384 }; /* a socket holds these without a reader */

static void check_hello(const struct wire_hello *hello)
{
    assert(hello->status < STATUS_COUNT && strlen(hello->error) < sizeof hello->error);
    assert(hello->status != STATUS_OK || policy_name_is_good(hello->name));
    assert((hello->searched | hello->resident | hello->one_device) <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    struct wire_hello hello;
    struct wire_answer answer;
    if (size > BYTES_MAX) return 0;
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    assert(wire_send(ends[1], data, size));
    close(ends[1]);
    enum wire_end came = wire_receive_hello(ends[0], 10, &hello);
    assert((came == WIRE_CLOSED) == (size < sizeof hello) && came != WIRE_LATE);
    if (came == WIRE_WHOLE) check_hello(&hello);
    while (came == WIRE_WHOLE && (came = wire_receive_answer(ends[0], 10, &answer)) == WIRE_WHOLE)
        assert(answer.chose <= 1 && answer.failed <= 1);
    close(ends[0]);
    return 0;
}
