/*
 * Carry out a plan: open its devices, place its host buffers, walk it in plan order and enqueue
 * every operation with the events it waits for.
 *
 * The log is JSON lines. The first says what the run is made of; then one for each minibatch of a
 * job, as soon as its loss is on the host:
 *     {"job":"a","step":12,"loss":3.21,"lr":0.0003,"tokens_per_s":2085.1,"elapsed_s":4.67}
 * with "loss":null,"nonfinite":true where it is NaN or infinite, and a "norm" of the gradients where the
 * job clips (the line then waits for that). An evaluation has a line of its own,
 *     {"job":"a","step":12,"evaluation":3.34,"best":true,"elapsed_s":4.81}
 * where "best" says whether it is the lowest so far. The last line says how the run ended. A run that
 * goes on from checkpoints appends, beginning with a first line again ("resumed":true); a step that
 * stands there twice was done twice, with equal losses.
 *
 * Stopping early keeps whole minibatches: when *stop is seen, each job that has begun a minibatch
 * ends it, nothing more is started, and state that lies on a device is brought back to the host.
 * Every job then stands at the end of its last completed minibatch.
 */
#ifndef SPILLWAY_EXEC_RUN_H
#define SPILLWAY_EXEC_RUN_H

#include "exec/state/run_options.h"

/*
 * With options->live the policy is asked as units end and devices have slots (planner/policy/plan_dispatch.h), and
 * `trace`, when it is complete, is that of the plan that result->order makes. A policy that breaks a rule, or
 * whose process fails, stops the run: STATUS_BAD_INPUT with what it did, when every job has ended the
 * minibatch that it had begun and checkpoints are written.
 *
 * `plan` must have passed plan_check(). Zeroed outputs in; release both, also after an error.
 * Errors: STATUS_NO_MEMORY with what is needed and what there is; STATUS_DEVICE, also when nothing
 * ends any more, with what waits for what; STATUS_BAD_INPUT for networks that cannot be trained
 * here, data and weights, and checkpoints of another training or at another step than a job begins;
 * STATUS_CHECK for damaged checkpoints; STATUS_IO. STATUS_INTERRUPTED never: stopping is
 * result->stopped; nor is a file that cannot be written at the end: everything else is, and result->unwritten
 * says what is missing. With keep_going, what is wrong with one job is its `failure` and no error; so is the
 * loss of a device, to each job that used it.
 */
MUST_CHECK enum status run_plan(const struct plan *plan, const struct run_options *options,
                                struct run_result *result, struct trace *trace,
                                struct error *err);
void run_result_release(struct run_result *result);

/*
 * Checks what run_plan() checks before it takes memory of the plan's sizes, and ends there: jobs, outputs, memory, data, names
 * and shapes of weights. Storage and numbers in files of weights are not looked at. Errors: those of run_plan().
 * *elsewhere: the error is that the plan is for another machine; jobs are then looked at only as far as no machine can train
 * them.
 */
MUST_CHECK enum status run_check(const struct plan *plan, const struct run_options *options, bool *elsewhere,
                                 struct error *err);

#endif
