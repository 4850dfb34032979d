/* Refusals of the emulated cuDNN, for tests; found with dlsym(). */
#ifndef SPILLWAY_TESTS_EMULATOR_CUDNN_EMULATED_CUDNN_H
#define SPILLWAY_TESTS_EMULATOR_CUDNN_EMULATED_CUDNN_H

#include <stdint.h>

enum refusal {
    REFUSE_NOTHING,
    REFUSE_VERSION,    /* it is 8.9.7 */
    REFUSE_HANDLE,
    REFUSE_TENSORS,    /* finalizing them */
    REFUSE_OPERATIONS,
    REFUSE_GRAPH,
    REFUSE_ENGINES,    /* none is proposed */
    REFUSE_STEADINESS, /* all are marked as giving other bits each time */
    REFUSE_PLANS,
    REFUSE_LITTLE,     /* the way back wants 16 GiB for whatever */
    REFUSE_EXECUTION,
    REFUSAL_COUNT
};

/* void emulated_cudnn_refuse(int refusal): from now on */
typedef void (*emulated_cudnn_refuse_function)(int refusal);
/* uint64_t emulated_cudnn_executions(void): graphs that were carried out since it was asked last */
typedef uint64_t (*emulated_cudnn_executions_function)(void);

#endif
