/*
 * The messages between a run and the process of a user's policy (policy_process.h), through a socket.
 *
 * That process runs code of the user's, which may write anything into the socket: what comes from there is checked here
 * before it is believed. A WIRE_WHOLE message has flags of 0 or 1, a known status, and texts that end.
 */
#ifndef SPILLWAY_PLANNER_POLICY_WIRE_H
#define SPILLWAY_PLANNER_POLICY_WIRE_H

#include "base/error.h"
#include "planner/policy/policy_load.h"

/* From there: the policy is loaded, or why not. */
struct wire_hello {
    uint32_t status;                  /* enum status */
    char error[sizeof(struct error) - sizeof(enum status)];
    char name[POLICY_NAME_MAX + 1];
    uint8_t searched, resident, one_device;
    uint32_t seats_max;
};

/* To there; jobs, devices and costs of jobs follow. */
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
    WIRE_LATE,   /* nothing came in time */
    WIRE_WRONG   /* something else came */
};

/* Sends all of it. False: the other end is gone. */
bool wire_send(int socket, const void *data, size_t bytes);

/* Receives all of it, whenever it comes. False: the other end is gone. */
bool wire_receive(int socket, void *data, size_t bytes);

/* Waits `within_s` at most. */
enum wire_end wire_receive_hello(int socket, double within_s, struct wire_hello *out);
enum wire_end wire_receive_answer(int socket, double within_s, struct wire_answer *out);

#endif
