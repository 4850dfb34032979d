/* Processes that contained code leaves running, found by a name. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_ORPHAN_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_ORPHAN_H

#include <stdbool.h>

#define SUPPORT_ORPHAN "spw-orphan"

/* Returns true if a process of that name is still running. A process that was just killed has five seconds to end. */
bool support_orphan_lives(void);

#endif
