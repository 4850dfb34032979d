/*
 * Messages between a run and a user's policy (policy_process.h).
 *
 * The user's code may write anything into the socket, so messages are checked before use. A WIRE_WHOLE message has
 * flags of 0 or 1, a known status, and terminated texts.
 */
#ifndef SPILLWAY_PLANNER_POLICY_POLICY_WIRE_H
#define SPILLWAY_PLANNER_POLICY_POLICY_WIRE_H

#include "base/error.h"
#include "planner/policy/policy_load.h"

/* From the process: the policy is loaded, or the reason why not. */
struct wire_hello {
    uint32_t status;                  /* enum status */
    char error[sizeof(struct error) - sizeof(enum status)];
    char name[POLICY_NAME_MAX + 1];
    uint8_t searched, resident, one_device;
    uint32_t seats_max;
};

/* To the process; jobs, devices and costs of jobs follow. */
struct wire_question {
    double now;
    uint32_t job_count, device_count, kind_count, device;
    uint64_t seed, decision;
    bool ahead;
};

struct wire_answer {
    struct policy_choice choice;
    uint8_t chose, failed; /* failed: create() made no state */
};

enum wire_end {
    WIRE_WHOLE,  /* a message came and is one */
    WIRE_CLOSED, /* the other end is gone */
    WIRE_LATE,   /* no message in time */
    WIRE_WRONG   /* an invalid message */
};

/* Sends `bytes` bytes. Returns false when the other end is gone. */
bool wire_send(int socket, const void *data, size_t bytes);

/* Receives `bytes` bytes, waiting without limit. Returns false when the other end is gone. */
bool wire_receive(int socket, void *data, size_t bytes);

/* Receives a hello, waiting at most `within_s` seconds. */
enum wire_end wire_receive_hello(int socket, double within_s, struct wire_hello *out);
enum wire_end wire_receive_answer(int socket, double within_s, struct wire_answer *out);

#endif
