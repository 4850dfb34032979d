#include "planner/solve/exact/stream_solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "planner/solve/exact/stream_program.h"

struct stream_solving {
    const struct instance *in;
    const struct stream_solve_options *options;
    struct dispatch *before, *now;
    struct dispatch_step *steps, *trial; /* the best order */
    int64_t *value;
    struct stream_solve_result *result;
};

/* Dispatches the trial, and keeps it if it is better. */
static bool keep_better(struct stream_solving *s)
{
    dispatch_clear(s->now);
    for (uint32_t t = 0; t < s->in->task_count; t++) dispatch_put(s->now, s->trial[t].job, s->trial[t].device);
    int64_t value = dispatch_value(s->now);
    if (value >= *s->value) return false;
    memcpy(s->steps, s->trial, s->in->task_count * sizeof *s->steps);
    *s->value = value;
    s->result->improved++;
    return true;
}

/* Notes what the solver says about a program of all tasks that asked for less than `asked`. */
static void note_proof(struct stream_solving *s, const struct milp_result *solved, int64_t asked)
{
    if (solved->status == MILP_INFEASIBLE) s->result->bound = asked;
    else if (solved->bounded) s->result->bound = (int64_t)fmin(ceil(solved->bound - 1e-6), (double)asked);
    s->result->proven = s->result->bound >= *s->value;
}

/* Asks for a better order of steps[from .. to). */
static enum status ask(struct stream_solving *s, uint32_t from, uint32_t to, struct error *err)
{
    struct stream_tails rest = {0};
    struct stream_program *program = NULL;
    struct milp_result solved = {0};
    int64_t asked = *s->value;
    uint32_t n = s->in->task_count;
    bool whole = to - from == n;
    const struct milp_options how = {.solver = s->options->solver, .limit_s = s->options->until_s - clock_s(),
                                     .nodes_max = s->options->nodes_max};
    struct stream_program_request request = {.before = s->before, .steps = s->steps + from, .count = to - from,
                                             .after = whole ? NULL : &rest, .limit = asked - 1};
    struct error none = {0};
    if (s->options->on_progress) s->options->on_progress(s->options->context);
    dispatch_clear(s->before);
    for (uint32_t t = 0; t < from; t++) dispatch_put(s->before, s->steps[t].job, s->steps[t].device);
    dispatch_copy(s->now, s->before);
    for (uint32_t t = from; t < to; t++) dispatch_put(s->now, s->steps[t].job, s->steps[t].device);
    TRY(stream_tails_make(s->now, s->steps + to, n - to, &rest, err));
    if (stream_program_create(&request, &program, &none)) {
        if (none.status != STATUS_INFEASIBLE) error_set(err, none.status, "%s", none.text);
        else if (whole) note_proof(s, &(struct milp_result){.status = MILP_INFEASIBLE}, asked);
        goto out;
    }
    s->result->programs++;
    enum status status = milp_solve(stream_program_milp(program), &how, &solved, err);
    s->result->nodes += solved.nodes;
    s->result->seconds += solved.seconds;
    s->result->cut_short |= solved.status == MILP_STOPPED && clock_s() >= s->options->until_s;
    if (solved.found) {
        memcpy(s->trial, s->steps, n * sizeof *s->trial);
        if (!stream_program_steps(program, solved.x, s->trial + from, err)) (void)!keep_better(s);
    }
    if (!status && whole) note_proof(s, &solved, asked);
out:
    free(solved.x);
    stream_program_destroy(program);
    stream_tails_release(&rest);
    return err->status;
}

static bool over(struct stream_solving *s, int64_t bound)
{
    if (*s->value <= bound) return true;
    bool late = clock_s() >= s->options->until_s;
    s->result->cut_short |= late;
    return late;
}

static enum status ask_whole(struct stream_solving *s, int64_t bound, struct error *err)
{
    s->result->whole = true;
    uint32_t improved = UINT32_MAX;
    while (!s->result->proven && improved != s->result->improved && !over(s, bound)) {
        improved = s->result->improved;
        TRY(ask(s, 0, s->in->task_count, err));
    }
    return STATUS_OK;
}

/* Windows overlap by half. */
static enum status ask_windows(struct stream_solving *s, int64_t bound, struct error *err)
{
    const uint32_t n = s->in->task_count, step = STREAM_SOLVE_WINDOW / 2, last = n - STREAM_SOLVE_WINDOW;
    uint32_t idle = 0, round = (last + step - 1) / step + 1, from = 0;
    for (uint32_t w = 0; w < s->options->windows && idle < round && !over(s, bound); w++) {
        uint32_t improved = s->result->improved;
        TRY(ask(s, from, from + STREAM_SOLVE_WINDOW, err));
        idle = improved == s->result->improved ? idle + 1 : 0;
        from = from == last ? 0 : from + step < last ? from + step : last;
    }
    return STATUS_OK;
}

enum status stream_solve(const struct instance *in, int64_t bound, const struct stream_solve_options *options,
                         struct dispatch_step *steps, int64_t *value, struct stream_solve_result *result,
                         struct error *err)
{
    struct stream_solving s = {.in = in, .options = options, .steps = steps, .value = value, .result = result};
    *result = (struct stream_solve_result){0};
    s.trial = alloc_zeroed(in->task_count, sizeof *s.trial);
    if (!s.trial) return error_memory(err, "an order", in->task_count * sizeof *s.trial);
    if (!dispatch_create(in, &s.before, err) && !dispatch_create(in, &s.now, err))
        (void)!(in->task_count <= STREAM_SOLVE_WHOLE ? ask_whole : ask_windows)(&s, bound, err);
    dispatch_destroy(s.before);
    dispatch_destroy(s.now);
    free(s.trial);
    return err->status;
}
