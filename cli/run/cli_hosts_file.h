/*
 * Reads a file of hosts, which says where the ranks of a run are:
 *
 *     # this machine, by the name at which the others reach it
 *     node0 slots=2
 *     node1
 *
 * Each line names a host and its number of ranks (1 unless "slots=N" says another). Ranks are numbered in the order of
 * lines. The ranks of the first line, and of lines with "localhost", are on this machine.
 */
#ifndef SPILLWAY_CLI_RUN_CLI_HOSTS_FILE_H
#define SPILLWAY_CLI_RUN_CLI_HOSTS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { CLI_HOSTS_RANKS_MAX = 256 };

struct cli_host {
    const char *name;
    uint32_t slots;
    bool is_here;
};

struct cli_hosts {
    struct arena arena;
    struct cli_host *hosts;
    uint32_t count;
    uint32_t ranks; /* of all hosts */
};

/* Errors: STATUS_BAD_INPUT "FILE:LINE:COLUMN: found ..., expected ..."; as file_read(). */
MUST_CHECK enum status cli_hosts_read(const char *path, struct cli_hosts *out, struct error *err);
void cli_hosts_release(struct cli_hosts *hosts);

/* Returns the host of a rank below hosts->ranks. */
const struct cli_host *cli_host_of(const struct cli_hosts *hosts, uint32_t rank);

#endif
