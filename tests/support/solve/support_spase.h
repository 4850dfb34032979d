/* SPASE instances for tests, and the optimum of tiny ones by exhaustive search. */
#ifndef SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_SPASE_H
#define SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_SPASE_H

#include "planner/saturn/spase/spase.h"

/* Reads an instance from JSON with ' for ". Fails the test if it is refused. Release it with spase_release(). */
void test_spase(const char *text, struct spase *out);

/* Returns the least makespan over all orders, modes and nodes; gangs must not span nodes. Only for about four jobs. */
int64_t test_spase_brute_force(const struct spase *in);

/* Makes a small random instance: up to `jobs` jobs, one or two classes, one to three nodes, gangs of one to three. */
void test_spase_tiny(uint64_t seed, uint32_t jobs, struct spase *out);

/* Prints the instance as JSON on standard output, for the report of a failure. */
void test_spase_print(const struct spase *in);

/* --- families ------------------------------------------------------------------------------ */

/* Random SPASE instances: jobs that train on one device for 1000 to 4000 ticks and, by a parallelism of efficiency e,
 * for that time over k^e on k devices. These are the families on which searches and bounds are measured.
 *
 * Each parallelism has for each job a factor on one device (0.85 to 1.3), an efficiency (0.55 to 0.95) and a least
 * number of devices (1, 2 or 4; the first parallelism starts at 1). Equal options give equal instances on every
 * machine. A second class is 0.4 to 0.7 as fast, job by job.
 */
struct test_spase_random {
    uint64_t seed;
    uint32_t jobs, parallelisms;        /* at least 1; at most 8 parallelisms */
    uint32_t nodes, devices;            /* number of nodes; devices of each */
    uint32_t slow_nodes, slow_devices;  /* likewise for a slower class; 0: none */
    bool powers; /* numbers of devices 1, 2, 4 ...; else every number */
    bool spans;  /* the last parallelism spans nodes, with up to twice a node's devices */
};

/* Makes an instance. Release it with spase_release(). Errors: STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status test_spase_random(const struct test_spase_random *options, struct spase *out, struct error *err);

#endif
