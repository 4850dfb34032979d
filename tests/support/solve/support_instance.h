/* Shard-scheduling instances for tests, and the optimum of tiny ones by exhaustive search. */
#ifndef SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_INSTANCE_H
#define SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_INSTANCE_H

#include "planner/solve/instance/instance.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/instance/timetable.h"

/* Reads an instance from JSON with ' for ". Fails the test if it is refused. Release it with instance_release(). */
void test_instance(const char *text, struct instance *out);

/* Returns the least objective over all orders and devices. Only for about ten tasks. */
int64_t test_brute_force(const struct instance *in);

/* Makes a small random instance of any family, with or without copies: up to `jobs` jobs of up to 3 units. */
void test_instance_tiny(uint64_t seed, uint32_t jobs, struct instance *out);

/* Makes case c of a seed: up to 5 devices and 9 jobs of up to 4 shards, of any regime; some with a bridge that
 * binds, some with two classes of devices. */
void test_instance_mixed(uint64_t seed, uint32_t c, struct instance *out);

/* Prints the instance as JSON on standard output, for the report of a failure. */
void test_instance_print(const struct instance *in);

/* Draws an instance of at most `tasks` tasks; `mixed`: some devices are of another class, by `seed`. Returns false
 * if it has more tasks. */
bool test_instance_drawn(const struct instance_random *options, uint32_t tasks, bool mixed, uint64_t seed,
                        struct instance *out);

/* Prints the instance and ends the test: `what` found a value that contradicts the optimum. */
void test_instance_wrong(const struct instance *in, uint64_t seed, uint32_t c, const char *what, int64_t found,
                         int64_t best);

#endif
