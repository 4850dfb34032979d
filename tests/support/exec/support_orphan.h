/* Processes that contained code leaves, by a name that tests look for. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_ORPHAN_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_ORPHAN_H

#include <stdbool.h>

#define SUPPORT_ORPHAN "spw-orphan"

/* Is a process of that name left? One that was just killed has five seconds to be gone. */
bool support_orphan_lives(void);

#endif
