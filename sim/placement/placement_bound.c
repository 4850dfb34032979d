/* Columns: groups of each shape, replicas of each model on them, and each model's attained requests, whose sum is
 * maximised. */
#include "sim/placement/placement_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "sim/placement/placement_program.h"
#include "sim/placement/window_cut.h"

enum { ROUNDS_MAX = 24 };
/* A row is added if the solution exceeds it by at least this number of requests. */
#define WORTH 0.5
/* Runs are searched with fractional capacities, and again with a loss of half a request per run. */
static const double roundings[] = {0, 0.5};
#define NONE UINT32_MAX

struct placement_bound_bounder {
    const struct serving *in;
    const struct traffic *traffic;
    struct serving_cuts cuts;
    struct placement_window *own, *common; /* (shape_count, model_count): on the model's slowest stage; on one stage
                                              for all models */
    uint32_t *requests, *first;    /* of each model: requests[first[m] .. first[m + 1]) */
    uint32_t *by_kind, *kind_first; /* the same for each kind */
    uint32_t *all;                 /* (traffic->count): 0, 1, 2 ... */
    uint32_t *groups, *replicas, *attained; /* columns; replicas: (model_count, shape_count), NONE: not possible */
    double *x, *weights, *scratch_s;
    bool *from;
    struct placement_window_runs runs, best;
    struct placement_program program;
};

/* --- shapes and windows ---------------------------------------------------------------------- */

/* Lists every degree with any number of stages. Returns false if there are too many. */
static bool list_shapes(const struct serving *in, struct serving_shape *out, uint32_t *count)
{
    double cutting = 0;
    *count = 0;
    for (uint32_t k = 0; k < in->kind_count; k++)
        for (uint32_t d = 0; d < in->kinds[k].degree_count; d++) {
            uint32_t tensor = in->kinds[k].degrees[d].tensor, layers = in->kinds[k].layer_count;
            for (uint32_t p = 1; p <= layers && p <= SERVING_STAGES_MAX && p * tensor <= in->device_count; p++) {
                struct serving_shape shape = {tensor, p};
                uint32_t seen = 0;
                while (seen < *count && !serving_shape_same(out[seen], shape)) seen++;
                if (seen == PLACEMENT_BOUND_SHAPES_MAX) return false;
                out[seen] = shape;
                *count += seen == *count;
                cutting += (double)p * layers * layers;
            }
        }
    return (double)*count * in->model_count <= PLACEMENT_BOUND_REPLICAS_MAX && cutting <= PLACEMENT_BOUND_CUTTING_MAX;
}

/* Returns the stage of a shape that all requests together keep busy the longest. */
static uint32_t busiest_stage(const struct placement_bound_bounder *b, struct serving_shape shape)
{
    uint32_t best = 0;
    double best_s = -1;
    for (uint32_t s = 0; s < shape.pipeline; s++) {
        double sum_s = 0;
        for (uint32_t m = 0; m < b->in->model_count; m++) {
            const struct stage_cut *cut = serving_cut(&b->cuts, shape, b->in->models[m].kind);
            if (cut) sum_s += cut->stage_s[s] * (b->first[m + 1] - b->first[m]);
        }
        if (sum_s <= best_s) continue;
        best = s;
        best_s = sum_s;
    }
    return best;
}

static uint32_t slowest_stage(const struct stage_cut *cut, uint32_t stages)
{
    uint32_t best = 0;
    for (uint32_t s = 1; s < stages; s++)
        if (cut->stage_s[s] > cut->stage_s[best]) best = s;
    return best;
}

static void make_windows(struct placement_bound_bounder *b)
{
    const struct serving *in = b->in;
    double latest_s = in->horizon_s;
    for (uint32_t m = 0; m < in->model_count; m++)
        if (in->models[m].objective_s < HUGE_VAL) latest_s = fmax(latest_s, in->horizon_s + in->models[m].objective_s);
    for (uint32_t s = 0; s < b->cuts.shape_count; s++) {
        struct serving_shape shape = b->cuts.shapes[s];
        uint32_t common = busiest_stage(b, shape);
        for (uint32_t m = 0; m < in->model_count; m++) {
            const struct serving_model *model = &in->models[m];
            const struct stage_cut *cut = serving_cut(&b->cuts, shape, model->kind);
            uint32_t own = cut ? slowest_stage(cut, shape.pipeline) : 0;
            b->own[(size_t)s * in->model_count + m] = placement_window_of(in, cut, shape.tensor, model, own, latest_s);
            b->common[(size_t)s * in->model_count + m] = placement_window_of(in, cut, shape.tensor, model, common,
                                                                             latest_s);
        }
    }
}

static enum status allocate(struct placement_bound_bounder *b, struct arena *arena, struct error *err)
{
    size_t models = b->in->model_count, shapes = b->cuts.shape_count, requests = b->traffic->count;
    TRY(ARENA_NEW(arena, shapes * models, b->own, err));
    TRY(ARENA_NEW(arena, shapes * models, b->common, err));
    TRY(ARENA_NEW(arena, models + 2, b->first, err));
    TRY(ARENA_NEW(arena, shapes, b->groups, err));
    TRY(ARENA_NEW(arena, shapes * models, b->replicas, err));
    TRY(ARENA_NEW(arena, models, b->attained, err));
    TRY(ARENA_NEW(arena, shapes + shapes * models + models, b->x, err));
    TRY(ARENA_NEW(arena, shapes, b->weights, err));
    TRY(ARENA_NEW(arena, requests, b->requests, err));
    TRY(ARENA_NEW(arena, (size_t)b->in->kind_count + 2, b->kind_first, err));
    TRY(ARENA_NEW(arena, requests, b->by_kind, err));
    TRY(ARENA_NEW(arena, requests, b->all, err));
    TRY(ARENA_NEW(arena, requests, b->scratch_s, err));
    TRY(ARENA_NEW(arena, 2 * requests, b->from, err));
    TRY(ARENA_NEW(arena, requests, b->runs.requests, err));
    TRY(ARENA_NEW(arena, requests, b->runs.ends, err));
    TRY(ARENA_NEW(arena, requests, b->best.requests, err));
    TRY(ARENA_NEW(arena, requests, b->best.ends, err));
    return STATUS_OK;
}

static uint32_t kind_of(const struct placement_bound_bounder *b, uint32_t request)
{
    return b->in->models[b->traffic->requests[request].model].kind;
}

static void list_requests(struct placement_bound_bounder *b)
{
    uint32_t *next = b->first + 1, *kind_next = b->kind_first + 1; /* at the end: begins of the next ones */
    for (uint32_t r = 0; r < b->traffic->count; r++) {
        next[b->traffic->requests[r].model + 1]++;
        kind_next[kind_of(b, r) + 1]++;
    }
    for (uint32_t m = 0; m < b->in->model_count; m++) next[m + 1] += next[m];
    for (uint32_t k = 0; k < b->in->kind_count; k++) kind_next[k + 1] += kind_next[k];
    for (uint32_t r = 0; r < b->traffic->count; r++) {
        b->all[r] = r;
        b->requests[next[b->traffic->requests[r].model]++] = r;
        b->by_kind[kind_next[kind_of(b, r)]++] = r;
    }
}

/* --- rows without runs ----------------------------------------------------------------------- */

static void add_columns(struct placement_bound_bounder *b)
{
    uint32_t models = b->in->model_count, shapes = b->cuts.shape_count;
    for (uint32_t s = 0; s < shapes; s++)
        b->groups[s] =
            placement_program_column(&b->program, b->in->device_count / serving_shape_devices(b->cuts.shapes[s]), 0);
    for (uint32_t m = 0; m < models; m++) {
        for (uint32_t s = 0; s < shapes; s++) {
            uint32_t most = b->in->device_count / serving_shape_devices(b->cuts.shapes[s]);
            bool possible = b->own[(size_t)s * models + m].possible;
            b->replicas[(size_t)m * shapes + s] = possible ? placement_program_column(&b->program, most, 0) : NONE;
        }
        b->attained[m] = placement_program_column(&b->program, b->first[m + 1] - b->first[m], 1);
    }
}

static double model_bytes(const struct placement_bound_bounder *b, uint32_t shape, uint32_t model)
{
    const struct stage_cut *cut = serving_cut(&b->cuts, b->cuts.shapes[shape], b->in->models[model].kind);
    double sum = 0;
    for (uint32_t s = 0; s < b->cuts.shapes[shape].pipeline; s++) sum += (double)cut->stage_bytes[s];
    return sum * b->cuts.shapes[shape].tensor;
}

/* Adds the row that a group has at most the fitting number of models of at least `least`'s size. */
static void add_counting_row(struct placement_bound_bounder *b, uint32_t shape, uint32_t least)
{
    uint32_t shapes = b->cuts.shape_count, count = 0;
    double bytes = model_bytes(b, shape, least);
    double most = bytes > 0 ? floor((double)b->in->device_bytes * serving_shape_devices(b->cuts.shapes[shape]) / bytes)
                            : HUGE_VAL;
    for (uint32_t m = 0; m < b->in->model_count; m++) {
        if (b->replicas[(size_t)m * shapes + shape] == NONE) continue;
        double own = m == least ? bytes : model_bytes(b, shape, m);
        if (own == bytes && m < least) return; /* an equal row is there */
        count += own >= bytes;
    }
    if (count <= most) return;
    for (uint32_t m = 0; m < b->in->model_count; m++)
        if (b->replicas[(size_t)m * shapes + shape] != NONE && (m == least || model_bytes(b, shape, m) >= bytes))
            placement_program_term(&b->program, b->replicas[(size_t)m * shapes + shape], 1);
    placement_program_term(&b->program, b->groups[shape], -most);
    placement_program_row(&b->program, 0);
}

static void add_memory_rows(struct placement_bound_bounder *b, uint32_t shape)
{
    uint32_t models = b->in->model_count, shapes = b->cuts.shape_count;
    double bytes = (double)b->in->device_bytes * serving_shape_devices(b->cuts.shapes[shape]);
    for (uint32_t m = 0; m < models; m++) { /* relative to a group's memory */
        uint32_t column = b->replicas[(size_t)m * shapes + shape];
        if (column != NONE) placement_program_term(&b->program, column, model_bytes(b, shape, m) / bytes);
    }
    placement_program_term(&b->program, b->groups[shape], -1);
    placement_program_row(&b->program, 0);
    for (uint32_t m = 0; m < models; m++)
        if (b->replicas[(size_t)m * shapes + shape] != NONE) add_counting_row(b, shape, m);
}

static void add_first_rows(struct placement_bound_bounder *b)
{
    uint32_t models = b->in->model_count, shapes = b->cuts.shape_count;
    for (uint32_t s = 0; s < shapes; s++)
        placement_program_term(&b->program, b->groups[s], serving_shape_devices(b->cuts.shapes[s]));
    placement_program_row(&b->program, b->in->device_count);
    for (uint32_t s = 0; s < shapes; s++) {
        for (uint32_t m = 0; m < models; m++) {
            uint32_t column = b->replicas[(size_t)m * shapes + s];
            if (column == NONE) continue;
            placement_program_term(&b->program, column, 1);
            placement_program_term(&b->program, b->groups[s], -1);
            placement_program_row(&b->program, 0);
        }
        add_memory_rows(b, s);
    }
}

/* --- rows of runs ---------------------------------------------------------------------------- */

/* The requests in which runs are searched: of one model, of a kind's models, or all. */
struct selection {
    uint32_t model, kind; /* NONE: any */
    const uint32_t *requests;
    uint32_t count;
    const struct placement_window *windows;
};

static uint32_t selection_count(const struct placement_bound_bounder *b)
{
    uint32_t kinds = b->in->kind_count;
    return b->in->model_count + (kinds > 1 ? kinds : 0) + 1;
}

/* Returns selection number `index`. Models of a kind share its slowest stage. */
static struct selection select_requests(const struct placement_bound_bounder *b, uint32_t index)
{
    uint32_t models = b->in->model_count, kind = index - models;
    if (index < models)
        return (struct selection){index, NONE, &b->requests[b->first[index]], b->first[index + 1] - b->first[index],
                                  b->own};
    if (index + 1 == selection_count(b)) return (struct selection){NONE, NONE, b->all, b->traffic->count, b->common};
    return (struct selection){NONE, kind, &b->by_kind[b->kind_first[kind]],
                              b->kind_first[kind + 1] - b->kind_first[kind], b->own};
}

static bool selects(const struct placement_bound_bounder *b, const struct selection *of, uint32_t model)
{
    return (of->model == NONE || of->model == model) && (of->kind == NONE || of->kind == b->in->models[model].kind);
}

static uint32_t group_column(const struct placement_bound_bounder *b, const struct selection *of, uint32_t shape)
{
    return of->model == NONE ? b->groups[shape] : b->replicas[(size_t)of->model * b->cuts.shape_count + shape];
}

/* Adds the row: attained - sum over shapes of capacity x groups <= requests outside the runs. */
static void add_run_row(struct placement_bound_bounder *b, const struct selection *of,
                        const struct placement_window_runs *runs)
{
    uint32_t models = b->in->model_count;
    for (uint32_t m = 0; m < models; m++)
        if (selects(b, of, m)) placement_program_term(&b->program, b->attained[m], 1);
    for (uint32_t s = 0; s < b->cuts.shape_count; s++) {
        uint32_t column = group_column(b, of, s);
        if (column == NONE) continue;
        const struct placement_window *windows = &of->windows[(size_t)s * models];
        placement_program_term(&b->program, column,
                               -(double)placement_window_capacity(b->traffic, windows, runs, b->scratch_s));
    }
    placement_program_row(&b->program, of->count - runs->request_count);
}

/* Returns the number of requests by which the program's solution exceeds the row of the runs. */
static double excess(const struct placement_bound_bounder *b, const struct selection *of,
                     const struct placement_window_runs *runs)
{
    uint32_t models = b->in->model_count;
    double sum = -(double)(of->count - runs->request_count);
    for (uint32_t m = 0; m < models; m++)
        if (selects(b, of, m)) sum += b->x[b->attained[m]];
    for (uint32_t s = 0; s < b->cuts.shape_count; s++)
        if (b->weights[s] > 0)
            sum -= b->weights[s] *
                   placement_window_capacity(b->traffic, &of->windows[(size_t)s * models], runs, b->scratch_s);
    return sum;
}

static void keep_runs(struct placement_bound_bounder *b)
{
    struct placement_window_runs best = b->best;
    b->best = b->runs;
    b->runs = best;
}

/* Adds the row that the solution exceeds most. Returns false if there is none. */
static bool separate(struct placement_bound_bounder *b, uint32_t index)
{
    struct selection of = select_requests(b, index);
    const struct placement_window_shapes shapes = {of.windows, b->weights, b->cuts.shape_count, b->in->model_count};
    double most = WORTH;
    for (uint32_t s = 0; s < b->cuts.shape_count; s++) {
        uint32_t column = group_column(b, &of, s);
        b->weights[s] = column == NONE ? 0 : b->x[column];
    }
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++) {
        placement_window_runs_find(b->traffic, &shapes, roundings[i], of.requests, of.count, b->from, &b->runs);
        double by = excess(b, &of, &b->runs);
        if (by <= most) continue;
        most = by;
        keep_runs(b);
    }
    if (most > WORTH) add_run_row(b, &of, &b->best);
    return most > WORTH;
}

/* Adds the row for all requests in one run: a model without groups attains nothing. */
static void add_whole_row(struct placement_bound_bounder *b, uint32_t index)
{
    struct selection of = select_requests(b, index);
    if (of.count == 0) return;
    memcpy(b->runs.requests, of.requests, of.count * sizeof *of.requests);
    b->runs.ends[0] = of.count;
    b->runs.request_count = of.count;
    b->runs.run_count = 1;
    add_run_row(b, &of, &b->runs);
}

static enum status solve(struct placement_bound_bounder *b, struct placement_bound *out, struct error *err)
{
    uint32_t selections = selection_count(b);
    double bound;
    bool found = true, more = true;
    add_columns(b);
    add_first_rows(b);
    for (uint32_t i = 0; i < selections; i++) add_whole_row(b, i);
    for (out->rounds = 0; found && more && out->rounds < ROUNDS_MAX; out->rounds++) {
        TRY(placement_program_solve(&b->program, b->x, &found, err));
        more = false;
        for (uint32_t i = 0; found && i < selections; i++) more = separate(b, i) || more;
    }
    TRY(placement_program_bound(&b->program, &bound, err));
    out->rows = (uint32_t)b->program.row_count;
    out->known = bound < HUGE_VAL;
    if (out->known) out->attained = (uint32_t)fmin(floor(bound * (1 + 1e-9) + 1e-6), b->traffic->count);
    return STATUS_OK;
}

enum status placement_bound(const struct serving *in, const struct traffic *traffic, struct placement_bound *out,
                            struct error *err)
{
    struct serving_shape shapes[PLACEMENT_BOUND_SHAPES_MAX];
    struct placement_bound_bounder b = {.in = in, .traffic = traffic};
    struct arena arena = {0};
    uint32_t count;
    *out = (struct placement_bound){0};
    if (!list_shapes(in, shapes, &count)) return STATUS_OK;
    enum status status = serving_cuts_make(&arena, in, shapes, count, &b.cuts, err);
    if (!status) status = allocate(&b, &arena, err);
    if (!status) status = placement_program_init(&b.program, err);
    if (!status) {
        list_requests(&b);
        make_windows(&b);
        status = solve(&b, out, err);
    }
    placement_program_release(&b.program);
    arena_release(&arena);
    if (status != STATUS_DEVICE) return status;
    *out = (struct placement_bound){0}; /* a failed solver must not hide other results */
    *err = (struct error){0};
    return STATUS_OK;
}
