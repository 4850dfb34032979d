/*
 * Is this machine ready? One finding for each thing that a run leans on: well, worth a look, or broken, and how to
 * repair it.
 *
 * Everything is read from where the system says it (/proc, /sys, programs on PATH), so that no CUDA library is
 * needed, and a test can put a made-up machine in its place.
 */
#ifndef SPILLWAY_CLI_CLI_DOCTOR_H
#define SPILLWAY_CLI_CLI_DOCTOR_H

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
    char repair[CLI_FINDING_BYTES]; /* "" when nothing is wrong */
};

struct cli_doctor {
    const char *root;        /* in front of /proc and /sys; "" but in tests */
    const char *storage;     /* a folder for states; NULL: the current one, which is not written to */
    uint64_t memlock_bytes;  /* memory that may be locked; UINT64_MAX: any */
    struct cli_finding findings[CLI_FINDINGS_MAX];
    uint32_t count;
    bool no_device;          /* nothing that could carry out a plan */
};

/* Look at everything; what cannot be looked at is a finding as well. */
void cli_doctor_look(struct cli_doctor *doctor);

/* The worst of all. */
enum cli_health cli_doctor_health(const struct cli_doctor *doctor);

#endif
