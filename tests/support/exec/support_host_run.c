#include "tests/support/exec/support_host_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"

void host_run_machine(struct hardware *out, uint32_t devices, uint32_t threads)
{
    test_hardware(out, devices, 1 << 24, 1e9);
    out->backend = "host";
    out->threads = threads;
}

void host_run(struct hardware *hardware, struct job_set *jobs, const struct host_run_options *options,
              struct host_run *out)
{
    struct error err = {0};
    const struct planner_options planner = {.policy = options->policy, .shards = options->shards,
                                            .activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE};
    const struct run_checkpoints checkpoints = {.folder = options->folder, .every_steps = 1, .keep = 100, .each = true};
    const struct run_options how = {.poison = true, .delay_seed = options->delay_seed,
                                    .checkpoints = options->folder ? &checkpoints : NULL};
    *out = (struct host_run){0};
    enum status status = parallel_check(&jobs->jobs[0], &err);
    if (!status) status = planner_plan(hardware, jobs, &planner, &out->plan, &err);
    if (!status) status = plan_check(&out->plan, &err);
    if (!status) status = run_plan(&out->plan, &how, &out->result, &out->trace, &err);
    if (status) fail_msg("%s%s%s", options->what ? options->what : "", options->what ? ": " : "", err.text);
}

void host_run_release(struct host_run *run)
{
    trace_release(&run->trace);
    run_result_release(&run->result);
    plan_release(&run->plan);
}
