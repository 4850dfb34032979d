/* How the threads of an OpenMP team wait for work. */
#ifndef SPILLWAY_EXEC_WAIT_POLICY_H
#define SPILLWAY_EXEC_WAIT_POLICY_H

/*
 * Let them sleep instead of spin, unless the user has chosen already (OMP_WAIT_POLICY,
 * GOMP_SPINCOUNT). OpenMP reads the environment when the program is loaded, so this starts the
 * program anew, once, with the same arguments; call it first thing in main. It returns when there is
 * nothing to do, or when that fails: a slower program is better than none.
 */
void wait_policy_passive(char **arguments);

#endif
