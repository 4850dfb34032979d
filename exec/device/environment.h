/* What libraries read from the environment when they are loaded: how threads wait, and how memory is copied. */
#ifndef SPILLWAY_EXEC_DEVICE_ENVIRONMENT_H
#define SPILLWAY_EXEC_DEVICE_ENVIRONMENT_H

/*
 * Makes the threads of OpenMP's teams spin for some 25 us before they sleep, and copies of 128 KiB and more bypass the
 * caches, unless the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT, or GLIBC_TUNABLES. Restarts the program once; call
 * it first in main. It returns when nothing is to be done, or when the restart fails.
 */
void environment_settle(char **arguments);

#endif
