/* Failures and findings of the emulated NCCL, for tests; found with dlsym(). */
#ifndef SPILLWAY_TESTS_EMULATOR_NCCL_EMULATED_NCCL_H
#define SPILLWAY_TESTS_EMULATOR_NCCL_EMULATED_NCCL_H

#include <stdint.h>

enum nccl_break {
    NCCL_BREAK_NOTHING,
    NCCL_BREAK_VERSION, /* it is 2.8.3 */
    NCCL_BREAK_INIT,    /* there are no communicators */
    NCCL_BREAK_SUM,     /* sums are wrong */
    NCCL_BREAK_GROUP,   /* the end of a group returns an error */
    NCCL_BREAK_REMOTE   /* a group never ends, and communicators have an asynchronous error */
};

/* void emulated_nccl_break(int what, uint64_t after): from the group of this number on; forgets counts and findings */
typedef void (*emulated_nccl_break_function)(int what, uint64_t after);

enum nccl_kind { NCCL_ALL_REDUCE, NCCL_REDUCE_SCATTER, NCCL_ALL_GATHER, NCCL_REDUCE, NCCL_BROADCAST };
/* uint64_t emulated_nccl_calls(int kind): of all members, since the last break */
typedef uint64_t (*emulated_nccl_calls_function)(int kind);

/* const char *emulated_nccl_finding(void): the first use that would hang, or has no defined result; "": none */
typedef const char *(*emulated_nccl_finding_function)(void);

/* uint64_t emulated_nccl_open(void): communicators that were neither destroyed nor aborted */
typedef uint64_t (*emulated_nccl_open_function)(void);

#endif
