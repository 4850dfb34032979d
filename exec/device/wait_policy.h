/* How the threads of an OpenMP team wait for work. */
#ifndef SPILLWAY_EXEC_DEVICE_WAIT_POLICY_H
#define SPILLWAY_EXEC_DEVICE_WAIT_POLICY_H

/*
 * Makes them sleep instead of spin, unless the user has chosen a policy (OMP_WAIT_POLICY,
 * GOMP_SPINCOUNT). OpenMP reads the environment at load time, so this restarts the program once;
 * call it first in main. It returns when nothing is to be done, or when the restart fails.
 */
void wait_policy_passive(char **arguments);

#endif
