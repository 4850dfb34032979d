/*
 * Carries out a plan: opens its devices, places its host buffers, and enqueues every operation in plan order.
 *
 * The log is JSON lines: a first line describes the run, and each minibatch adds a line when its loss is on the host:
 *     {"job":"a","step":12,"loss":3.21,"lr":0.0003,"tokens_per_s":2085.1,"elapsed_s":4.67}
 * with "loss":null,"nonfinite":true when the loss is NaN or infinite, and a "norm" of the gradients when the job
 * clips. An evaluation has its own line,
 *     {"job":"a","step":12,"evaluation":3.34,"best":true,"elapsed_s":4.81}
 * where "best" says whether its loss is the lowest so far. The last line says how the run ended. A run that continues
 * from checkpoints appends, starting with a first line again ("resumed":true). A step that appears twice was done
 * twice, with equal losses.
 *
 * When *stop is set, each job finishes the minibatch that it has begun, and state on devices is copied back to the
 * host.
 */
#ifndef SPILLWAY_EXEC_RUN_RUN_H
#define SPILLWAY_EXEC_RUN_RUN_H

#include "exec/state/run_options.h"

/*
 * Carries out a plan. With options->live the policy is asked when units end and devices have slots
 * (planner/policy/plan_dispatch.h); `trace`, if complete, then belongs to the plan that result->order makes. A policy
 * that fails or breaks a rule stops the run: STATUS_BAD_INPUT, after every job has finished its minibatch and
 * checkpoints are written.
 *
 * `plan` must have passed plan_check(). The caller zeroes the outputs, and releases both also after an error. Errors:
 * STATUS_NO_MEMORY with the bytes needed and available; STATUS_DEVICE, also when the run hangs, with the operations
 * that wait for each other; STATUS_BAD_INPUT for unsupported networks, data, weights, and checkpoints of another
 * training or step; STATUS_CHECK for damaged checkpoints; STATUS_IO. A stop sets result->stopped. A file that cannot
 * be written at the end is named in result->unwritten; all others are written. With keep_going, the fault of one job
 * is its `failure` and no error; so is the loss of a device, for each job that used it.
 */
MUST_CHECK enum status run_plan(const struct plan *plan, const struct run_options *options,
                                struct run_result *result, struct trace *trace,
                                struct error *err);
void run_result_release(struct run_result *result);

/*
 * Makes the checks of run_plan() before it allocates memory of the plan's sizes, except storage and the numbers in
 * files of weights. Errors: as run_plan(). *elsewhere: the plan is for another machine. Jobs are then checked only for
 * faults on every machine.
 */
MUST_CHECK enum status run_check(const struct plan *plan, const struct run_options *options, bool *elsewhere,
                                 struct error *err);

#endif
