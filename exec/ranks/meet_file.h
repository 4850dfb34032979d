/* Where ranks on one machine meet: rank 0 writes the port at which it listens to a file, the others read it. */
#ifndef SPILLWAY_EXEC_RANKS_MEET_FILE_H
#define SPILLWAY_EXEC_RANKS_MEET_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

MUST_CHECK enum status meet_file_write(const char *path, uint32_t port, struct error *err);
void meet_file_remove(const char *path);

/* Waits for the file, and makes an address of it. Errors: STATUS_DEVICE at the deadline. */
MUST_CHECK enum status meet_file_await(const char *path, double until_s, char *address, size_t bytes,
                                       struct error *err);

#endif
