/*
 * With every path padded to the limit T, the devices have G T ticks. A path costs the start of its first remaining
 * task, the distances between neighbours, and its last task's tail; without remaining tasks T. The least cost of
 * covering them is a lower bound on the devices' need; above G T the node is hopeless. The duals rise towards it path
 * by path, so most hopeless nodes are recognised early.
 *
 * A node keeps columns' duals and the matching, by numbers of tasks; rows' duals follow. A device's row has its last
 * task's number.
 */
#include "planner/solve/exact/residual_bound.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "planner/solve/bounds/assignment.h"

enum { SIDE_MAX = RESIDUAL_BOUND_TASKS_MAX + BRANCH_BOUND_DEVICES_MAX, FREE = UINT16_MAX };

static const int32_t forbidden = INT32_MAX;

struct kept { /* state of a depth; devices follow the tasks */
    int64_t column[SIDE_MAX];
    uint16_t match[SIDE_MAX]; /* of columns: the row */
};

struct residual_bound {
    const struct instance *in;
    uint32_t n;
    uint16_t first[BRANCH_BOUND_JOBS_MAX]; /* number of a job's first task */
    uint16_t unit[RESIDUAL_BOUND_TASKS_MAX];
    uint8_t job[RESIDUAL_BOUND_TASKS_MAX];
    int64_t before[RESIDUAL_BOUND_TASKS_MAX];  /* computation of the job before the task */
    int64_t tail[RESIDUAL_BOUND_TASKS_MAX];
    int32_t distance[RESIDUAL_BOUND_TASKS_MAX][RESIDUAL_BOUND_TASKS_MAX];
    struct kept *kept;                     /* (n + 1) */
    /* of the present node */
    uint32_t side, left;                   /* rows; the first rows, which are tasks */
    uint16_t rows[SIDE_MAX], columns[SIDE_MAX]; /* their numbers */
    int32_t cost[SIDE_MAX][SIDE_MAX];
    int64_t row[SIDE_MAX], column[SIDE_MAX];
    uint16_t row_of[SIDE_MAX];
    bool matched[SIDE_MAX];                /* rows */
};

bool residual_bound_takes(const struct instance *in)
{
    return in->objective == OBJECTIVE_MAKESPAN && in->task_count <= RESIDUAL_BOUND_TASKS_MAX &&
           branch_bound_takes(in);
}

/* --- between tasks --------------------------------------------------------------------------- */

static int32_t distance(const struct residual_bound *b, uint32_t j, uint32_t k)
{
    const struct instance *in = b->in;
    int64_t least = ASSIGNMENT_FORBIDDEN;
    if (b->job[j] == b->job[k] && k <= j) return forbidden;
    for (uint32_t c = 0; c < in->class_count; c++)
        if (instance_fits(in, b->unit[j], c) && instance_fits(in, b->unit[k], c)) {
            int64_t setup = instance_setup(in, b->unit[j], b->unit[k], c);
            if (setup < least) least = setup;
        }
    if (b->job[j] == b->job[k] && k > j + 1 && least < ASSIGNMENT_FORBIDDEN)
        least = max_i64(least, b->before[k] - b->before[j] +
                                   instance_through_host(in, b->unit[j], b->unit[j + 1]) +
                                   instance_through_host(in, b->unit[k - 1], b->unit[k]));
    return least < forbidden ? (int32_t)least : forbidden;
}

enum status residual_bound_create(const struct instance *in, struct residual_bound **out, struct error *err)
{
    struct residual_bound *b = alloc_zeroed(1, sizeof *b);
    struct kept *kept = alloc_zeroed(in->task_count + 1u, sizeof *kept);
    if (!b || !kept) {
        free(b);
        free(kept);
        return error_memory(err, "bounds of nodes", in->task_count * sizeof *kept);
    }
    b->in = in;
    b->kept = kept;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint32_t length = instance_length(job);
        int64_t sum = 0;
        b->first[i] = (uint16_t)b->n;
        for (uint32_t t = 0; t < length; t++, b->n++) {
            uint32_t unit = instance_unit_at(job, t);
            b->unit[b->n] = (uint16_t)unit;
            b->job[b->n] = (uint8_t)i;
            b->before[b->n] = sum;
            sum += instance_compute_min(in, unit);
        }
        for (uint32_t t = b->first[i]; t < b->n; t++)
            b->tail[t] = max_i64(sum - b->before[t] + in->units[b->unit[b->n - 1]].out,
                                 instance_compute_min(in, b->unit[t]) + in->units[b->unit[t]].out);
    }
    for (uint32_t j = 0; j < b->n; j++)
        for (uint32_t k = 0; k < b->n; k++) b->distance[j][k] = distance(b, j, k);
    *out = b;
    return STATUS_OK;
}

void residual_bound_destroy(struct residual_bound *b)
{
    if (!b) return;
    free(b->kept);
    free(b);
}

/* --- the problem of a node ------------------------------------------------------------------- */

/* Returns when a task can start if it is the next one of this device; `soon`: the earliest start anywhere. */
static int64_t next_start(const struct residual_bound *b, const struct branch_node *node, uint32_t device,
                          uint32_t task, int64_t soon)
{
    const struct instance *in = b->in;
    const struct branch_place *place = &node->places[device];
    uint32_t unit = b->unit[task], job = b->job[task], class = in->device_class[device];
    bool own = place->job == job && node->device[job] == device;
    if (task == b->first[job] + (uint32_t)node->next[job] && !own) soon = max_i64(soon, node->ready[job]);
    int64_t free = place->job == BRANCH_NO_JOB ? in->units[unit].in
                                        : place->start + instance_setup(in, place->unit, unit, class);
    return max_i64(soon, free);
}

static void state_problem(struct residual_bound *b, const struct branch_node *node, int64_t limit)
{
    const struct instance *in = b->in;
    int64_t soon[SIDE_MAX];
    uint32_t left = 0;
    for (uint32_t i = 0; i < in->job_count; i++) {
        uint32_t first = b->first[i] + (uint32_t)node->next[i], length = instance_length(&in->jobs[i]);
        int64_t from = max_i64(node->ended[i], node->now);
        for (uint32_t t = first; t < b->first[i] + length; t++, left++) {
            b->rows[left] = b->columns[left] = (uint16_t)t;
            soon[left] = from + b->before[t] - b->before[first];
        }
    }
    b->left = left;
    b->side = left + in->device_count;
    for (uint32_t r = 0; r < left; r++) {
        const int32_t *apart = b->distance[b->rows[r]];
        for (uint32_t c = 0; c < left; c++) {
            int32_t d = apart[b->columns[c]];
            b->cost[r][c] = d < forbidden && soon[r] + d + b->tail[b->columns[c]] <= limit ? d : forbidden;
        }
        for (uint32_t c = left; c < b->side; c++) b->cost[r][c] = (int32_t)b->tail[b->rows[r]];
    }
    for (uint32_t g = 0; g < in->device_count; g++) {
        const struct branch_place *place = &node->places[g];
        uint32_t r = left + g;
        b->rows[r] = (uint16_t)(place->job == BRANCH_NO_JOB ? b->n + g : place->task);
        b->columns[r] = (uint16_t)(b->n + g);
        for (uint32_t c = 0; c < left; c++) {
            uint32_t task = b->columns[c];
            int64_t start = forbidden;
            if (instance_fits(in, b->unit[task], in->device_class[g]))
                start = next_start(b, node, g, task, soon[c]);
            b->cost[r][c] = start + b->tail[task] <= limit ? (int32_t)start : forbidden;
        }
        for (uint32_t c = left; c < b->side; c++) b->cost[r][c] = (int32_t)limit;
    }
}

/* Makes feasible duals and a matching of pairs without reduced cost. Returns the sum of the duals. */
static int64_t begin(struct residual_bound *b, const struct kept *parent)
{
    int64_t sum = 0;
    memset(b->matched, 0, b->side * sizeof *b->matched);
    for (uint32_t c = 0; c < b->side; c++) {
        b->column[c] = parent ? parent->column[b->columns[c]] : 0;
        b->row_of[c] = FREE;
        sum += b->column[c];
    }
    for (uint32_t r = 0; r < b->side; r++) {
        int64_t least = INT64_MAX;
        uint32_t best = 0;
        for (uint32_t c = 0; c < b->side; c++) {
            int64_t reduced = b->cost[r][c] - b->column[c];
            if (b->cost[r][c] == forbidden || reduced > least) continue;
            bool known = parent && parent->match[b->columns[c]] == b->rows[r];
            if (reduced < least || known || (b->row_of[best] != FREE && b->row_of[c] == FREE)) best = c;
            least = reduced;
        }
        if (least == INT64_MAX) return INT64_MAX; /* no column may follow it */
        b->row[r] = least;
        sum += least;
        if (b->row_of[best] != FREE) continue;
        b->row_of[best] = (uint16_t)r;
        b->matched[r] = true;
    }
    return sum;
}

/* Matches row `r` by the shortest path. Returns the rise of the sum of the duals. */
static int64_t augment(struct residual_bound *b, uint32_t r)
{
    int64_t distances[SIDE_MAX];
    uint16_t from[SIDE_MAX], done[SIDE_MAX];
    bool scanned[SIDE_MAX] = {false};
    uint32_t done_count = 0, row = r;
    int64_t reach = 0;
    for (uint32_t c = 0; c < b->side; c++) distances[c] = INT64_MAX;
    for (;;) {
        uint32_t best = FREE;
        for (uint32_t c = 0; c < b->side; c++) {
            if (scanned[c]) continue;
            if (b->cost[row][c] < forbidden) {
                int64_t d = reach + b->cost[row][c] - b->row[row] - b->column[c];
                if (d < distances[c]) {
                    distances[c] = d;
                    from[c] = (uint16_t)row;
                }
            }
            if (distances[c] < INT64_MAX && (best == FREE || distances[c] < distances[best])) best = c;
        }
        if (best == FREE) return INT64_MAX;
        reach = distances[best];
        scanned[best] = true;
        done[done_count++] = (uint16_t)best;
        if (b->row_of[best] == FREE) break;
        row = b->row_of[best];
    }
    b->row[r] += reach;
    for (uint32_t i = 0; i + 1 < done_count; i++) {
        uint32_t c = done[i];
        b->column[c] -= reach - distances[c];
        b->row[b->row_of[c]] += reach - distances[c];
    }
    for (uint32_t c = done[done_count - 1];;) {
        uint32_t at = from[c], next = FREE;
        for (uint32_t i = 0; i + 1 < done_count && next == FREE; i++)
            if (b->row_of[done[i]] == at) next = done[i];
        b->row_of[c] = (uint16_t)at;
        if (at == r) break;
        c = next;
    }
    b->matched[r] = true;
    return reach;
}

static void keep(const struct residual_bound *b, struct kept *kept)
{
    for (uint32_t c = 0; c < b->side; c++) {
        kept->column[b->columns[c]] = b->column[c];
        kept->match[b->columns[c]] = b->rows[b->row_of[c]];
    }
}

bool residual_bound_breaks(struct residual_bound *b, const struct branch_node *node, uint32_t depth, bool inherit,
                           int64_t limit)
{
    int64_t most = limit * b->in->device_count;
    state_problem(b, node, limit);
    int64_t sum = begin(b, inherit ? &b->kept[depth - 1] : NULL);
    if (sum > most) return true;
    for (uint32_t r = 0; r < b->side; r++) {
        if (b->matched[r]) continue;
        int64_t rise = augment(b, r);
        if (rise == INT64_MAX || rise > most - sum) return true;
        sum += rise;
    }
    keep(b, &b->kept[depth]);
    return false;
}
