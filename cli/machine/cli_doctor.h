/*
 * The findings of `doctor`: the health of what a run depends on, and repairs. All is read from system files (/proc,
 * /sys, programs on PATH), without a CUDA library; tests substitute a made-up machine.
 */
#ifndef SPILLWAY_CLI_MACHINE_CLI_DOCTOR_H
#define SPILLWAY_CLI_MACHINE_CLI_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum cli_health { CLI_HEALTH_OK, CLI_HEALTH_WARN, CLI_HEALTH_FAIL, CLI_HEALTH_COUNT };
extern const char *const cli_health_names[CLI_HEALTH_COUNT]; /* "ok", "warn", "fail" */

enum { CLI_FINDINGS_MAX = 32, CLI_FINDING_BYTES = 320 };

struct cli_finding {
    const char *name; /* "executor" */
    enum cli_health health;
    char text[CLI_FINDING_BYTES];
    char repair[CLI_FINDING_BYTES]; /* "" if healthy */
};

struct cli_doctor {
    const char *root;        /* prefix of /proc and /sys in tests */
    const char *storage;     /* for states; NULL: the current folder, unwritten */
    uint64_t memlock_bytes;  /* lockable; UINT64_MAX: unlimited */
    struct cli_finding findings[CLI_FINDINGS_MAX];
    uint32_t count;
    bool no_device;          /* for plans */
};

/* Checks everything; parts that cannot be checked are findings too. */
void cli_doctor_look(struct cli_doctor *doctor);

/* Returns the worst. */
enum cli_health cli_doctor_health(const struct cli_doctor *doctor);

#endif
