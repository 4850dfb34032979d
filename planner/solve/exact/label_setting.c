/*
 * Nothing is lost: take a schedule of makespan `limit` or less, its tasks in the order of their starts. With each start
 * as early as the order allows, but not before the previous one, no start is later, so it is a path through the label
 * sets. If a label on the path was dropped for another, the other can be completed in the same way, each task no
 * earlier than the present of either. So an uncut pass with an empty last set proves that no such schedule exists. A
 * schedule from a last set is only known to end within `limit`, because dominance does not compare finished jobs' ends;
 * the next pass asks for less.
 */
#include "planner/solve/exact/label_setting.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/anytime.h"
#include "base/try.h"
#include "planner/solve/exact/label_set.h"

enum { TASKS_MAX = TASK_NET_TASKS_MAX };

/* Widths of passes; size of a label set from which prices are fitted to it, and the sample of labels used for that. */
enum { WIDTH_MIN = 500, WIDTH_FACTOR = 8, CHOSEN_WIDTH = 10000, FIT_MIN = 3000, SAMPLE = 32, FIT_ROUNDS = 50 };

/* All label sets together, relative to one; least room for a label set's children, with any memory. */
enum { HISTORY_SHARE = 4, LABELS_MIN = 2048 };

/* Rounds of fitting before the first set; fewer if rounds take long: work (tasks^2 by ticks) in all, and of a label
 * set. */
enum { ROOT_ROUNDS = 300 };
static const double root_work = 5e8, label_set_work = 5e7;

struct label_side { /* forwards or mirrored */
    struct task_net *net;
    struct lagrangian_bound *prices;
    bool known;     /* prices were fitted before and are the start */
    bool fitted;    /* to the present limit */
    uint64_t nodes; /* of its last pass */
};

struct label_search {
    const struct instance *in;
    const struct instance_bounds *bounds;
    const struct label_setting_options *options;
    struct label_setting_result *result;
    int64_t limit;
    struct label_set *sets[2];
    struct label_step *history; /* of kept labels */
    uint32_t label_max, history_count, history_max;
    bool cut;
    struct anytime limits;
};

bool label_setting_takes(const struct instance *in)
{
    return task_net_takes(in);
}

/* --- label sets ------------------------------------------------------------------------------ */

static bool out_of_time(struct label_search *s)
{
    if (s->options->nodes_max > 0 && s->result->nodes >= s->options->nodes_max) s->limits.over = true;
    return !anytime_step(&s->limits);
}

/* Starts the next task of job i on device g. Returns false if it cannot end in time. */
static bool put(const struct label_search *s, const struct task_net *net, const struct lagrangian_state *from,
                uint32_t i, uint32_t g, struct lagrangian_state *to)
{
    const struct task_net_class *class = &net->classes[net->in->device_class[g]];
    uint32_t k = from->next[i], j = from->task[g];
    bool neighbours = k > net->first[i] && j == k - 1;
    int32_t ready = from->soon[i] + (neighbours || k == net->first[i] ? 0 : net->through[k - 1]);
    int32_t start = max_i32(max_i32(from->start[g] + class->setup[j][k], from->now),
                            max_i32(ready, net->head[k]));
    if (start + class->step[k] - net->step[k] + net->tail[k] > s->limit) return false;
    if (start + class->step[k] + (net->mirrored ? 0 : (int32_t)net->in->units[net->unit[k]].out) > s->limit)
        return false;
    *to = *from;
    to->now = start;
    to->start[g] = start;
    to->task[g] = (uint16_t)k;
    to->next[i] = (uint16_t)(k + 1);
    to->soon[i] = start + class->step[k];
    for (uint32_t o = 0; o < net->job_count; o++)
        if (to->next[o] < net->first[o + 1] &&
            max_i32(to->soon[o], start) + net->tail[to->next[o]] > s->limit)
            return false;
    return true;
}

static void expand(struct label_search *s, const struct label_side *side, const struct label_set *set, uint32_t at,
                   struct label_set *to)
{
    const struct task_net *net = side->net;
    struct lagrangian_state from, child;
    uint32_t before = label_set_at(set, at)->step.before;
    label_set_state(set, at, &from);
    for (uint32_t i = 0; i < net->job_count; i++) {
        uint32_t k = from.next[i], empty = 0; /* classes of which an empty device was tried */
        if (k == net->first[i + 1]) continue;
        for (uint32_t g = 0; g < net->device_count; g++) {
            uint32_t class = net->in->device_class[g];
            if (!net->classes[class].fits[k]) continue;
            if (from.task[g] == net->task_count) {
                if (empty >> class & 1) continue;
                empty |= 1u << class;
            }
            if (!put(s, net, &from, i, g, &child)) continue;
            s->result->nodes++;
            int64_t slack = lagrangian_bound_slack(side->prices, &child);
            if (slack < 0) continue;
            struct label_entry label = {slack, {before, (uint8_t)i, (uint8_t)g}};
            label_set_add(to, &child, &label);
        }
    }
}

static void narrow(struct label_search *s, struct label_set *set, uint32_t width)
{
    if (label_set_count(set) <= width) return;
    s->cut = true;
    label_set_narrow(set, width);
}

static uint32_t rounds_of(const struct label_search *s, uint32_t most, double work)
{
    double tasks = s->in->task_count, rounds = work / (tasks * tasks * (double)(s->limit + 1));
    if (s->options->fit_share > 0) {
        rounds *= s->options->fit_share;
        most = (uint32_t)ceil(most * s->options->fit_share);
    }
    return rounds < most ? (uint32_t)rounds + 1 : most;
}

/* Fits the prices to a sample of the set, and evaluates all of the set again. */
static void refit(struct label_search *s, const struct label_side *side, struct label_set *set)
{
    struct lagrangian_state sample[SAMPLE];
    uint64_t count = label_set_count(set);
    for (uint32_t n = 0; n < SAMPLE; n++) label_set_state(set, (uint32_t)(n * count / SAMPLE), &sample[n]);
    lagrangian_bound_fit(side->prices, sample, SAMPLE, rounds_of(s, FIT_ROUNDS, label_set_work), s->options->until_s);
    label_set_bound(set, side->prices, s->options->until_s);
}

static void keep_history(struct label_search *s, struct label_set *set)
{
    narrow(s, set, s->history_max - s->history_count);
    for (uint32_t l = 0; l < label_set_count(set); l++) {
        struct label_entry *label = label_set_at(set, l);
        s->history[s->history_count] = label->step;
        label->step.before = s->history_count++;
    }
}

/* Makes all label sets, each cut to `width`. Returns the last one, or NULL if time is up. */
static struct label_set *pass(struct label_search *s, const struct label_side *side, uint32_t width)
{
    const struct task_net *net = side->net;
    uint32_t branches = net->job_count * net->device_count;
    uint32_t fit_min = s->options->fit_min > 0 ? s->options->fit_min : FIT_MIN;
    struct label_set *from = s->sets[0], *to = s->sets[1];
    struct lagrangian_state root;
    lagrangian_state_begin(net, &root);
    label_set_begin(from, net);
    label_set_begin(to, net);
    label_set_add(from, &root, &(struct label_entry){0});
    s->history_count = 0;
    s->cut = false;
    for (uint32_t depth = 1; depth <= net->task_count && label_set_count(from) > 0; depth++) {
        label_set_clear(to);
        for (uint32_t l = 0; l < label_set_count(from); l++) {
            if (l % 16 == 0 && out_of_time(s)) return NULL;
            if (label_set_count(to) + branches > s->label_max) {
                label_set_reduce(to, s->limit, s->options->until_s);
                if (label_set_count(to) > s->label_max / 2) narrow(s, to, s->label_max / 4);
            }
            expand(s, side, from, l, to);
        }
        label_set_reduce(to, s->limit, s->options->until_s);
        if (out_of_time(s)) return NULL;
        if (label_set_count(to) >= fit_min && depth + 2 < net->task_count) refit(s, side, to);
        narrow(s, to, width);
        keep_history(s, to);
        struct label_set *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* --- a run ----------------------------------------------------------------------------------- */

/* Keeps the best schedule of the last set, which is not empty. */
static enum status keep_best(struct label_search *s, const struct label_side *side, const struct label_set *last,
                             struct dispatch_step *steps, int64_t *value, struct error *err)
{
    struct dispatch_step path[TASKS_MAX];
    struct dispatch *d;
    TRY(dispatch_create(s->in, &d, err));
    for (uint32_t l = 0; l < label_set_count(last); l++) {
        uint32_t at = label_set_at(last, l)->step.before;
        for (uint32_t t = s->in->task_count; t-- > 0; at = s->history[at].before)
            path[t] = (struct dispatch_step){s->history[at].job, s->history[at].device};
        task_net_order(side->net, path);
        dispatch_clear(d);
        for (uint32_t t = 0; t < s->in->task_count; t++) dispatch_put(d, path[t].job, path[t].device);
        int64_t made = dispatch_value(d);
        assert(made <= s->limit);
        if (made >= *value) continue;
        *value = made;
        memcpy(steps, path, s->in->task_count * sizeof *path);
    }
    dispatch_destroy(d);
    return STATUS_OK;
}

/* Fits prices to a new limit. Returns false if they prove that no schedule is within it. */
static bool fit_root(struct label_search *s, struct label_side *side)
{
    uint32_t most = side->known ? ROOT_ROUNDS / 4 : ROOT_ROUNDS;
    struct lagrangian_state root;
    lagrangian_state_begin(side->net, &root);
    lagrangian_bound_fit(side->prices, &root, 1, rounds_of(s, most, root_work), s->options->until_s);
    lagrangian_bound_keep(side->prices);
    side->fitted = side->known = true;
    return lagrangian_bound_slack(side->prices, &root) >= 0;
}

/* Lowers the limit below the best known value; all prices must be fitted again. */
static void lower_limit(struct label_search *s, struct label_side *sides, uint32_t side_count, int64_t value)
{
    s->limit = value - 1;
    for (uint32_t o = 0; o < side_count; o++) {
        lagrangian_bound_return(sides[o].prices);
        lagrangian_bound_limit(sides[o].prices, s->limit);
        sides[o].fitted = false;
    }
}

/* Runs passes of growing width: from both sides first, then from the side with fewer nodes. */
static enum status search(struct label_search *s, struct label_side *sides, uint32_t side_count,
                          struct dispatch_step *steps, int64_t *value, struct error *err)
{
    uint32_t width = s->options->width > 0 ? s->options->width : WIDTH_MIN, which = 0, tried = 0;
    uint32_t widest = s->options->width_max > 0 && s->options->width_max < s->label_max ? s->options->width_max
                                                                                        : s->label_max;
    while (!out_of_time(s) && *value > instance_bounds_best(s->bounds)) {
        struct label_side *side = &sides[which];
        uint64_t before = s->result->nodes;
        if (side->fitted) lagrangian_bound_return(side->prices);
        else if (!fit_root(s, side)) break;
        const struct label_set *last = pass(s, side, width < widest ? width : widest);
        if (!last) return STATUS_OK;
        if (label_set_count(last) > 0) {
            TRY(keep_best(s, side, last, steps, value, err));
            lower_limit(s, sides, side_count, *value);
            continue;
        }
        if (!s->cut) break;
        side->nodes = s->result->nodes - before;
        tried++;
        if (tried < side_count && width < CHOSEN_WIDTH) {
            which = 1 - which;
            continue;
        }
        if (width >= widest) return STATUS_OK;
        if (tried == 2) which = sides[1].nodes < sides[0].nodes;
        tried = 0;
        width = width < UINT32_MAX / WIDTH_FACTOR ? width * WIDTH_FACTOR : UINT32_MAX;
    }
    s->result->proven = !s->limits.over;
    return STATUS_OK;
}

static void release_room(struct label_search *s)
{
    label_set_destroy(s->sets[0]);
    label_set_destroy(s->sets[1]);
    free(s->history);
    s->sets[0] = s->sets[1] = NULL;
    s->history = NULL;
}

static enum status try_room(struct label_search *s, const struct task_net *net, struct error *err)
{
    s->history_max = HISTORY_SHARE * s->label_max;
    s->history = alloc_zeroed(s->history_max, sizeof *s->history);
    if (!s->history) return error_memory(err, "label sets", s->history_max * sizeof *s->history);
    TRY(label_set_create(net, s->label_max, &s->sets[0], err));
    return label_set_create(net, s->label_max, &s->sets[1], err);
}

/* Allocates as much of `memory` as is available. */
static enum status make_room(struct label_search *s, const struct task_net *net, size_t memory, struct error *err)
{
    size_t bytes = 2 * label_set_label_bytes(net) + HISTORY_SHARE * sizeof *s->history;
    size_t most = UINT32_MAX / HISTORY_SHARE;
    if (memory / bytes < most) most = memory / bytes;
    s->label_max = most > LABELS_MIN ? (uint32_t)most : LABELS_MIN;
    while (try_room(s, net, err) && s->label_max > LABELS_MIN) {
        release_room(s);
        s->label_max = s->label_max / 2 > LABELS_MIN ? s->label_max / 2 : LABELS_MIN;
        *err = (struct error){0};
    }
    return err->status;
}

enum status label_setting_run(const struct instance *in, const struct instance_bounds *bounds,
                              const struct label_setting_options *options, struct dispatch_step *steps,
                              int64_t *value, struct label_setting_result *result, struct error *err)
{
    struct label_search s = {.in = in, .bounds = bounds, .options = options, .result = result, .limit = *value - 1,
                             .limits = {.until_s = options->until_s, .clock_every = 1}};
    struct label_side sides[2] = {{0}};
    bool alike = in->class_count == 1, mirrored = alike && options->sides == 2;
    uint32_t side_count = alike && options->sides % 3 == 0 ? 2 : 1;
    size_t memory = options->memory_bytes ? options->memory_bytes : (size_t)768 << 20;
    *result = (struct label_setting_result){0};
    assert(label_setting_takes(in));
    for (uint32_t o = 0; o < side_count; o++)
        if (task_net_create(in, mirrored || o == 1, &sides[o].net, err) ||
            lagrangian_bound_create(sides[o].net, bounds, s.limit, &sides[o].prices, err))
            goto out;
    if (make_room(&s, sides[0].net, memory, err) || search(&s, sides, side_count, steps, value, err)) goto out;
out:
    release_room(&s);
    for (uint32_t o = 0; o < 2; o++) {
        lagrangian_bound_destroy(sides[o].prices);
        task_net_destroy(sides[o].net);
    }
    return err->status;
}
