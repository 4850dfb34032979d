/* Files of random rows. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_ROWS_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_ROWS_H

#include <stdint.h>

/* Writes rows of 2 up to `longest` tokens, each with something to learn but every `idle`-th (0: all have). Fails the
 * test on errors. */
void support_rows_write(const char *path, uint64_t seed, uint64_t rows, uint64_t longest, uint64_t vocabulary,
                        uint64_t idle);

#endif
