/* Each kind adds its own columns and rows; one table has the first column of each job's modes. */
#include "planner/saturn/spase/spase_formulation.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/saturn/spase/spase_bound.h"

const char *const spase_formulation_names[SPASE_FORMULATION_COUNT] = {"published", "flow", "allotment"};

enum { NO_COLUMN = UINT32_MAX };

static const double published_m = 1e8;

struct spase_formulation {
    const struct spase *in;
    enum spase_formulation_kind kind;
    int64_t bound, limit;
    struct milp *milp;
    uint32_t makespan;   /* columns */
    uint32_t *mode;      /* published, allotment: (mode_count) */
    uint32_t *placed;    /* flow: (mode_count, node_count); NO_COLUMN */
    uint32_t *node;      /* published: (job_count, node_count) */
    uint32_t *start;     /* flow: (job_count); published: (job_count, device_count) */
    uint32_t *occupied;  /* published: (job_count, device_count) */
    uint32_t *before;    /* (job_count, job_count): flow i ends before j starts; published: A */
};

static uint32_t number(const struct spase_job *job, uint32_t mode)
{
    return mode - job->first_mode;
}

static bool holds(const struct spase *in, uint32_t node, const struct spase_mode *mode)
{
    return in->nodes[node].class == mode->class && in->nodes[node].device_count >= mode->devices;
}

/* --- published ------------------------------------------------------------------------------- */

static void add_published_columns(struct spase_formulation *f)
{
    const struct spase *in = f->in;
    uint32_t devices = in->device_count;
    f->makespan = milp_column(f->milp, 0, HUGE_VAL, 1, false, "C");
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
            f->mode[m] = milp_column(f->milp, 0, 1, 0, true, "B_%u_%u", j, number(job, m));
        for (uint32_t n = 0; n < in->node_count; n++)
            f->node[j * in->node_count + n] = milp_column(f->milp, 0, 1, 0, true, "O_%u_%u", j, n);
        for (uint32_t g = 0; g < devices; g++) {
            f->occupied[(size_t)j * devices + g] = milp_column(f->milp, 0, 1, 0, true, "P_%u_%u", j, g);
            f->start[(size_t)j * devices + g] = milp_column(f->milp, 0, HUGE_VAL, 0, true, "I_%u_%u", j, g);
        }
        for (uint32_t i = 0; i < in->job_count; i++)
            if (i != j)
                f->before[(size_t)j * in->job_count + i] = milp_column(f->milp, 0, 1, 0, true, "A_%u_%u", j, i);
    }
}

static void add_published_choices(struct spase_formulation *f, uint32_t j)
{
    const struct spase *in = f->in;
    const struct spase_job *job = &in->jobs[j];
    for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) milp_term(f->milp, f->mode[m], 1);
    milp_row(f->milp, 1, 1, "once_%u", j);
    for (uint32_t n = 0; n < in->node_count; n++) milp_term(f->milp, f->node[j * in->node_count + n], 1);
    milp_row(f->milp, 1, 1, "somewhere_%u", j);
    for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
        for (uint32_t n = 0; n < in->node_count; n++) { /* nodes differ: not in the paper's rows */
            if (holds(in, n, &in->modes[m])) continue;
            milp_term(f->milp, f->mode[m], 1);
            milp_term(f->milp, f->node[j * in->node_count + n], 1);
            milp_row(f->milp, -HUGE_VAL, 1, "room_%u_%u_%u", j, number(job, m), n);
        }
}

/* Adds a job's devices and starts on one node, for one mode. */
static void add_published_gang(struct spase_formulation *f, uint32_t j, uint32_t n, uint32_t m)
{
    const struct spase *in = f->in;
    const struct spase_node *node = &in->nodes[n];
    const struct spase_mode *mode = &in->modes[m];
    uint32_t s = number(&in->jobs[j], m), o = f->node[j * in->node_count + n];
    const uint32_t *occupied = f->occupied + (size_t)j * in->device_count + node->first_device;
    const uint32_t *start = f->start + (size_t)j * in->device_count + node->first_device;
    double k = mode->devices, big = published_m;
    for (int sign = -1; sign <= 1; sign += 2) { /* sign * (sum P - k) <= M (2 - B - O) */
        for (uint32_t g = 0; g < node->device_count; g++) milp_term(f->milp, occupied[g], sign);
        milp_term(f->milp, f->mode[m], big);
        milp_term(f->milp, o, big);
        milp_row(f->milp, -HUGE_VAL, 2 * big + sign * k, "count_%u_%u_%u_%s", j, n, s, sign > 0 ? "most" : "least");
    }
    for (uint32_t g = 0; g < node->device_count; g++) {
        milp_term(f->milp, f->makespan, 1);
        milp_term(f->milp, start[g], -1);
        milp_term(f->milp, f->mode[m], -big);
        milp_row(f->milp, (double)mode->ticks - big, HUGE_VAL, "end_%u_%u_%u", j, node->first_device + g, s);
        for (int sign = -1; sign <= 1; sign += 2) { /* sign * (sum I / k - I_g) <= M (3 - P - B - O) */
            for (uint32_t h = 0; h < node->device_count; h++)
                milp_term(f->milp, start[h], sign * (1 / k - (h == g ? 1 : 0)));
            milp_term(f->milp, occupied[g], big);
            milp_term(f->milp, f->mode[m], big);
            milp_term(f->milp, o, big);
            milp_row(f->milp, -HUGE_VAL, 3 * big, "gang_%u_%u_%u_%s", j, node->first_device + g, s,
                     sign > 0 ? "most" : "least");
        }
    }
}

/* Adds the order of jobs i and j on one device: job i ends first if A_i_j = 1. */
static void add_published_isolation(struct spase_formulation *f, uint32_t g, uint32_t i, uint32_t j)
{
    const struct spase *in = f->in;
    size_t devices = in->device_count;
    const struct spase_job *first = &in->jobs[i], *second = &in->jobs[j];
    uint32_t a = f->before[(size_t)i * in->job_count + j];
    double big = published_m;
    for (uint32_t m = second->first_mode; m < second->first_mode + second->mode_count; m++) { /* j, then i */
        milp_term(f->milp, f->start[i * devices + g], 1);
        milp_term(f->milp, f->start[j * devices + g], -1);
        milp_term(f->milp, f->occupied[i * devices + g], -big);
        milp_term(f->milp, f->occupied[j * devices + g], -big);
        milp_term(f->milp, a, big);
        milp_term(f->milp, f->mode[m], -big);
        milp_row(f->milp, (double)in->modes[m].ticks - 3 * big, HUGE_VAL, "after_%u_%u_%u_%u", g, i, j,
                 number(second, m));
    }
    for (uint32_t m = first->first_mode; m < first->first_mode + first->mode_count; m++) { /* i, then j */
        milp_term(f->milp, f->start[j * devices + g], 1);
        milp_term(f->milp, f->start[i * devices + g], -1);
        milp_term(f->milp, f->occupied[i * devices + g], -big);
        milp_term(f->milp, f->occupied[j * devices + g], -big);
        milp_term(f->milp, a, -big);
        milp_term(f->milp, f->mode[m], -big);
        milp_row(f->milp, (double)in->modes[m].ticks - 4 * big, HUGE_VAL, "before_%u_%u_%u_%u", g, i, j,
                 number(first, m));
    }
}

static void add_published(struct spase_formulation *f)
{
    const struct spase *in = f->in;
    add_published_columns(f);
    for (uint32_t j = 0; j < in->job_count; j++) {
        add_published_choices(f, j);
        for (uint32_t n = 0; n < in->node_count; n++) {
            const struct spase_node *node = &in->nodes[n];
            for (uint32_t g = 0; g < node->device_count; g++)
                milp_term(f->milp, f->occupied[(size_t)j * in->device_count + node->first_device + g], 1);
            milp_term(f->milp, f->node[j * in->node_count + n], -published_m);
            milp_row(f->milp, -HUGE_VAL, 0, "elsewhere_%u_%u", j, n);
            for (uint32_t m = in->jobs[j].first_mode; m < in->jobs[j].first_mode + in->jobs[j].mode_count; m++)
                add_published_gang(f, j, n, m);
        }
    }
    for (uint32_t g = 0; g < in->device_count; g++)
        for (uint32_t i = 0; i < in->job_count; i++)
            for (uint32_t j = 0; j < in->job_count; j++)
                if (i != j) add_published_isolation(f, g, i, j);
}

/* --- flow ------------------------------------------------------------------------------------ */

/* Returns the node's number among equal nodes. */
static uint32_t rank_of(const struct spase *in, uint32_t node)
{
    uint32_t rank = 0;
    for (uint32_t n = 0; n < node; n++)
        rank += in->nodes[n].class == in->nodes[node].class &&
                in->nodes[n].device_count == in->nodes[node].device_count;
    return rank;
}

/* Adds factor * column over a job's modes on a node (any with SPASE_ANY_NODE): ticks or devices. */
static void add_modes(struct spase_formulation *f, uint32_t j, uint32_t node, bool ticks, double factor)
{
    const struct spase *in = f->in;
    for (uint32_t m = in->jobs[j].first_mode; m < in->jobs[j].first_mode + in->jobs[j].mode_count; m++)
        for (uint32_t n = 0; n < in->node_count; n++) {
            uint32_t column = f->placed[(size_t)m * in->node_count + n];
            if (column == NO_COLUMN || (node != SPASE_ANY_NODE && n != node)) continue;
            milp_term(f->milp, column, factor * (ticks ? (double)in->modes[m].ticks : in->modes[m].devices));
        }
}

static enum status add_flow_modes(struct spase_formulation *f, uint32_t j, struct error *err)
{
    const struct spase *in = f->in;
    const struct spase_job *job = &in->jobs[j];
    int64_t shortest = INT64_MAX;
    uint32_t first = milp_column_count(f->milp);
    for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
        for (uint32_t n = 0; n < in->node_count; n++) {
            const struct spase_mode *mode = &in->modes[m];
            /* job 0 is on the first of equal nodes, job 1 on one of the first two ... */
            bool may = holds(in, n, mode) && mode->ticks <= f->limit && rank_of(in, n) <= j;
            f->placed[(size_t)m * in->node_count + n] =
                may ? milp_column(f->milp, 0, 1, 0, true, "x_%u_%u_%u", j, number(job, m), n) : NO_COLUMN;
            if (may && mode->ticks < shortest) shortest = mode->ticks;
        }
    if (shortest == INT64_MAX)
        return error_set(err, STATUS_INFEASIBLE, "job '%.80s' does not end by %" PRId64, job->name, f->limit);
    for (uint32_t c = first; c < milp_column_count(f->milp); c++) milp_term(f->milp, c, 1);
    milp_row(f->milp, 1, 1, "once_%u", j);
    f->start[j] = milp_column(f->milp, 0, (double)(f->limit - shortest), 0, false, "s_%u", j);
    milp_term(f->milp, f->makespan, 1);
    milp_term(f->milp, f->start[j], -1);
    add_modes(f, j, SPASE_ANY_NODE, true, -1);
    milp_row(f->milp, 0, HUGE_VAL, "end_%u", j);
    return STATUS_OK;
}

static void add_flow_orders(struct spase_formulation *f)
{
    const struct spase *in = f->in;
    uint32_t jobs = in->job_count;
    for (uint32_t i = 0; i < jobs; i++)
        for (uint32_t j = 0; j < jobs; j++)
            if (i != j) f->before[(size_t)i * jobs + j] = milp_column(f->milp, 0, 1, 0, true, "y_%u_%u", i, j);
    for (uint32_t i = 0; i < jobs; i++)
        for (uint32_t j = 0; j < jobs; j++) {
            if (i == j) continue;
            milp_term(f->milp, f->start[j], 1);
            milp_term(f->milp, f->start[i], -1);
            add_modes(f, i, SPASE_ANY_NODE, true, -1);
            milp_term(f->milp, f->before[(size_t)i * jobs + j], -(double)f->limit);
            milp_row(f->milp, -(double)f->limit, HUGE_VAL, "follow_%u_%u", i, j);
            if (i > j) continue;
            milp_term(f->milp, f->before[(size_t)i * jobs + j], 1);
            milp_term(f->milp, f->before[(size_t)j * jobs + i], 1);
            milp_row(f->milp, -HUGE_VAL, 1, "one_way_%u_%u", i, j);
        }
}

/* Adds a node's flow of devices: from the source to jobs, from jobs to later ones. */
static void add_flow_node(struct spase_formulation *f, uint32_t n)
{
    const struct spase *in = f->in;
    uint32_t jobs = in->job_count, from = milp_column_count(f->milp);
    double devices = in->nodes[n].device_count;
    for (uint32_t j = 0; j < jobs; j++) milp_column(f->milp, 0, devices, 0, false, "first_%u_%u", n, j);
    uint32_t pairs = milp_column_count(f->milp);
    for (uint32_t i = 0; i < jobs; i++)
        for (uint32_t j = 0; j < jobs; j++)
            milp_column(f->milp, 0, i == j ? 0 : devices, 0, false, "pass_%u_%u_%u", n, i, j);
    for (uint32_t j = 0; j < jobs; j++) {
        milp_term(f->milp, from + j, 1);
        for (uint32_t i = 0; i < jobs; i++) milp_term(f->milp, pairs + i * jobs + j, 1);
        add_modes(f, j, n, false, -1);
        milp_row(f->milp, 0, 0, "in_%u_%u", n, j);
        for (uint32_t i = 0; i < jobs; i++) milp_term(f->milp, pairs + j * jobs + i, 1);
        add_modes(f, j, n, false, -1);
        milp_row(f->milp, -HUGE_VAL, 0, "out_%u_%u", n, j);
        for (uint32_t i = 0; i < jobs; i++) {
            if (i == j) continue;
            milp_term(f->milp, pairs + i * jobs + j, 1);
            milp_term(f->milp, f->before[(size_t)i * jobs + j], -devices);
            milp_row(f->milp, -HUGE_VAL, 0, "behind_%u_%u_%u", n, i, j);
        }
    }
    for (uint32_t j = 0; j < jobs; j++) milp_term(f->milp, from + j, 1);
    milp_row(f->milp, -HUGE_VAL, devices, "devices_%u", n);
}

/* Adds spase_bound.h's rows, of devices and roundings of time, in shares of their rooms. */
static enum status add_scaled(struct spase_formulation *f, struct error *err)
{
    const struct spase *in = f->in;
    struct spase_row *rows;
    uint32_t count = 0;
    TRY(spase_rows_make(in, f->limit, &rows, &count, err));
    for (uint32_t r = 0; r < count; r++) {
        double room = (double)spase_row_room(in, &rows[r], f->limit);
        bool of_time = rows[r].g != 0;
        if (rows[r].g > 4 || (f->kind == SPASE_ALLOTMENT && of_time)) continue;
        for (uint32_t m = 0; m < in->mode_count; m++)
            for (uint32_t n = 0; n < (f->kind == SPASE_FLOW ? in->node_count : 1); n++) {
                uint32_t column = f->kind == SPASE_FLOW ? f->placed[(size_t)m * in->node_count + n] : f->mode[m];
                if (column == NO_COLUMN || in->modes[m].ticks > f->limit) continue;
                milp_term(f->milp, column,
                          (double)spase_row_weight(in, &rows[r], f->limit, &in->modes[m]) / room * (double)f->limit);
            }
        if (!of_time) milp_term(f->milp, f->makespan, -1);
        milp_row(f->milp, -HUGE_VAL, of_time ? (double)f->limit : 0, "scaled_%u", r);
    }
    free(rows);
    return STATUS_OK;
}

static enum status add_flow(struct spase_formulation *f, struct error *err)
{
    f->makespan = milp_column(f->milp, (double)f->bound, (double)f->limit, 1, true, "C");
    for (uint32_t j = 0; j < f->in->job_count; j++)
        TRY(add_flow_modes(f, j, err));
    add_flow_orders(f);
    for (uint32_t n = 0; n < f->in->node_count; n++) add_flow_node(f, n);
    return add_scaled(f, err);
}

/* --- allotment ------------------------------------------------------------------------------- */

static enum status add_allotment(struct spase_formulation *f, struct error *err)
{
    const struct spase *in = f->in;
    f->makespan = milp_column(f->milp, (double)f->bound, (double)f->limit, 1, false, "C");
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
            f->mode[m] = milp_column(f->milp, 0, 1, 0, true, "x_%u_%u", j, number(job, m));
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
            milp_term(f->milp, f->mode[m], 1);
        milp_row(f->milp, 1, 1, "once_%u", j);
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
            milp_term(f->milp, f->mode[m], (double)in->modes[m].ticks);
        milp_term(f->milp, f->makespan, -1);
        milp_row(f->milp, -HUGE_VAL, 0, "end_%u", j);
    }
    return add_scaled(f, err);
}

/* --- the program ----------------------------------------------------------------------------- */

enum status spase_formulation_create(const struct spase *in, enum spase_formulation_kind kind, int64_t bound,
                                     int64_t limit, struct spase_formulation **out, struct error *err)
{
    size_t jobs = in->job_count, devices = in->device_count, nodes = in->node_count;
    for (uint32_t m = 0; m < in->mode_count; m++)
        if (in->modes[m].spans && kind != SPASE_ALLOTMENT)
            return error_set(err, STATUS_LIMIT, "the %s formulation has no gangs that span nodes",
                             spase_formulation_names[kind]);
    if (limit < bound) return error_set(err, STATUS_INFEASIBLE, "no schedule ends by %" PRId64, limit);
    if (kind == SPASE_FLOW && limit > SPASE_FORMULATION_TICKS_MAX)
        return error_set(err, STATUS_LIMIT, "times of %" PRId64 " ticks drown in a solver's tolerances (limit is %d)",
                         limit, SPASE_FORMULATION_TICKS_MAX);
    if (kind != SPASE_ALLOTMENT && jobs * (jobs + devices) > MILP_ENTRIES_MAX)
        return error_set(err, STATUS_LIMIT, "too many jobs for the %s formulation", spase_formulation_names[kind]);
    struct spase_formulation *f = alloc_zeroed(1, sizeof *f);
    if (!f) return error_memory(err, "a formulation", sizeof *f);
    *f = (struct spase_formulation){.in = in, .kind = kind, .bound = bound, .limit = limit,
                                    .milp = milp_create(spase_formulation_names[kind])};
    f->mode = alloc_zeroed(in->mode_count, sizeof *f->mode);
    f->placed = alloc_zeroed(in->mode_count * nodes, sizeof *f->placed);
    f->node = alloc_zeroed(jobs * nodes, sizeof *f->node);
    f->start = alloc_zeroed(jobs * devices, sizeof *f->start);
    f->occupied = alloc_zeroed(jobs * devices, sizeof *f->occupied);
    f->before = alloc_zeroed(jobs * jobs, sizeof *f->before);
    if (!f->milp || !f->mode || !f->placed || !f->node || !f->start || !f->occupied || !f->before)
        error_memory(err, "a formulation", jobs * devices * sizeof *f->start);
    else if (kind == SPASE_PUBLISHED) add_published(f);
    else if (kind == SPASE_FLOW ? add_flow(f, err) : add_allotment(f, err)) {} /* told in err */
    if (err->status) {
        spase_formulation_destroy(f);
        return err->status;
    }
    *out = f;
    return STATUS_OK;
}

void spase_formulation_destroy(struct spase_formulation *f)
{
    if (!f) return;
    milp_destroy(f->milp);
    free(f->mode);
    free(f->placed);
    free(f->node);
    free(f->start);
    free(f->occupied);
    free(f->before);
    free(f);
}

const struct milp *spase_formulation_milp(const struct spase_formulation *f)
{
    return f->milp;
}

/* --- values as a schedule -------------------------------------------------------------------- */

struct spase_formulation_ordered {
    double start;
    struct spase_step step;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct spase_formulation_ordered *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->step.job > y->step.job) - (x->step.job < y->step.job);
}

static struct spase_formulation_ordered read_job(const struct spase_formulation *f, const double *x, uint32_t j)
{
    const struct spase *in = f->in;
    const struct spase_job *job = &in->jobs[j];
    struct spase_formulation_ordered found = {0, {j, UINT32_MAX, SPASE_ANY_NODE}};
    if (f->kind == SPASE_FLOW) {
        found.start = x[f->start[j]];
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
            for (uint32_t n = 0; n < in->node_count; n++) {
                uint32_t column = f->placed[(size_t)m * in->node_count + n];
                if (column != NO_COLUMN && x[column] > 0.5) found.step = (struct spase_step){j, m, n};
            }
        return found;
    }
    for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++)
        if (x[f->mode[m]] > 0.5) found.step.mode = m;
    for (uint32_t n = 0; n < in->node_count; n++)
        if (x[f->node[j * in->node_count + n]] > 0.5) found.step.node = n;
    for (uint32_t g = 0; g < in->device_count; g++) {
        size_t at = (size_t)j * in->device_count + g;
        if (x[f->occupied[at]] > 0.5) found.start = fmax(found.start, x[f->start[at]]);
    }
    return found;
}

/* Returns the order of a solution's schedule; not for the allotment. STATUS_CHECK for no mode, or a node without
 * room. */
static enum status spase_formulation_steps(const struct spase_formulation *f, const double *x, struct spase_step *steps,
                                           struct error *err)
{
    const struct spase *in = f->in;
    struct spase_formulation_ordered *order = alloc_zeroed(in->job_count, sizeof *order);
    if (!order) return error_memory(err, "a schedule", in->job_count * sizeof *order);
    for (uint32_t j = 0; j < in->job_count; j++) {
        order[j] = read_job(f, x, j);
        const struct spase_step *step = &order[j].step;
        if (step->mode == UINT32_MAX || step->node == SPASE_ANY_NODE ||
            !holds(in, step->node, &in->modes[step->mode])) {
            error_set(err, STATUS_CHECK, "the solver's answer gives job '%.80s' no mode on a node with room",
                      in->jobs[j].name);
            goto out;
        }
    }
    qsort(order, in->job_count, sizeof *order, compare_ordered);
    for (uint32_t j = 0; j < in->job_count; j++) steps[j] = order[j].step;
out:
    free(order);
    return err->status;
}

/* --- solving --------------------------------------------------------------------------------- */

/* Adopts a better schedule of the solver with its real value. */
static enum status adopt_solution(const struct spase_formulation *f, const double *x, struct spase_step *steps,
                                  int64_t *value, struct error *err)
{
    const struct spase *in = f->in;
    struct spase_schedule schedule = {0};
    struct spase_step *found = alloc_zeroed(in->job_count, sizeof *found);
    if (!found) return error_memory(err, "a schedule", in->job_count * sizeof *found);
    if (!spase_formulation_steps(f, x, found, err) && !spase_schedule_make(in, found, NULL, &schedule, err) &&
        !spase_check(in, &schedule, err) && schedule.makespan < *value) {
        memcpy(steps, found, in->job_count * sizeof *found);
        *value = schedule.makespan;
    }
    spase_schedule_release(&schedule);
    free(found);
    return err->status;
}

enum status spase_formulation_solve(const struct spase *in, enum spase_formulation_kind kind,
                                    const char *solver, double limit_s, int64_t bound, struct spase_step *steps,
                                    int64_t *value, struct spase_formulation_result *result, struct error *err)
{
    struct spase_formulation *f = NULL;
    struct milp_result solved = {0};
    struct milp_options options = {.solver = solver, .limit_s = limit_s, .cuts = kind == SPASE_ALLOTMENT};
    int64_t limit = kind == SPASE_FLOW ? *value - 1 : *value;
    *result = (struct spase_formulation_result){.status = MILP_STOPPED};
    if (spase_formulation_create(in, kind, bound, limit, &f, err)) {
        if (err->status != STATUS_INFEASIBLE) return err->status;
        *err = (struct error){0};
        result->status = MILP_INFEASIBLE;
        result->proven = true;
        return STATUS_OK;
    }
    if (!milp_solve(f->milp, &options, &solved, err)) {
        result->status = solved.status;
        if (solved.bounded && kind != SPASE_PUBLISHED && solved.bound > 0)
            result->bound = (int64_t)fmin(ceil(solved.bound - 1e-6 * solved.bound), (double)limit + 1);
        result->proven = kind == SPASE_FLOW && solved.status == MILP_INFEASIBLE;
    }
    result->seconds = solved.seconds;
    result->nodes = solved.nodes;
    if (solved.found) {
        result->claims = true;
        result->claimed = solved.value;
    }
    if (solved.found && kind != SPASE_ALLOTMENT && !err->status && !adopt_solution(f, solved.x, steps, value, err))
        result->proven |= kind == SPASE_FLOW && solved.status == MILP_OPTIMAL && *value <= result->bound;
    free(solved.x);
    spase_formulation_destroy(f);
    return err->status;
}
