/*
 * Rules: for a guess of the makespan, each job takes the mode of least area that ends within a share of the guess, and
 * long (or large) jobs go first; a few dozen guesses and shares are tried. This is the dual approximation for malleable
 * jobs, without its repair.
 *
 * Annealing changes one thing at a time: a job's mode, its place in the list, both, or two jobs' places. The value of a
 * list is its makespan plus a little of the mean end of the devices: of two schedules that end together, the one with
 * less area leaves more room. Rounds begin with the best schedule and with a random rule's, alternately; they grow
 * longer, within a limit by the number of jobs. The state of the list before every place is kept, so that a change
 * costs only the rest of the list, and a list that is too long already is dropped.
 *
 * Source: rules after Turek, Wolf and Yu, "Approximate algorithms for scheduling parallelizable tasks", 1992; annealing
 * after Kirkpatrick, Gelatt and Vecchi, 1983.
 */
#include "planner/saturn/spase/spase_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/anytime.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "base/try.h"

/* Tuned on 12 jobs on one node of 8 (thirty instances, 150 000 lists each) and 64 jobs on 4 such nodes (300 000 and
 * 1 000 000 lists): the first temperature is 1.7 % of the makespan of the former and 0.14 % of the latter. 12 jobs
 * then end 0.5 % above the optimum on average; with fewer and longer rounds, or half of the mean's share, 0.9 %. */
static const double mean_share = 0.8; /* weight of the devices' mean end in the value of a list */
static const double hot = 0.7;       /* first temperature, in shares of makespan over jobs^1.5 */
static const double cooling_all = 1.0 / 25;
enum { SHORTEST_ROUND = 500, FIRST_ROUND = 5000, LONGEST_ROUND = 400000, CLOCK_EVERY = 256 };

struct keyed {
    double key;
    uint32_t job, mode;
};

struct spase_search {
    const struct spase *in;
    const struct spase_search_options *options;
    struct spase_list list;
    struct spase_slot *saved;   /* (job_count + 1, device_count): state before each place */
    int64_t *ends;              /* (job_count + 1): the latest end before each place */
    struct spase_step *current, *trial, *best;
    struct keyed *keyed;        /* (job_count) scratch of rules */
    double guess;               /* of the makespan, for rules */
    int64_t *value;             /* of best */
    double worth;               /* of current */
    uint64_t draws;             /* random numbers */
    struct anytime limits;      /* a step is a list that annealing examines */
};

static uint32_t draw_below(struct spase_search *s, uint32_t bound)
{
    return (uint32_t)random_below(s->options->seed, s->draws++, bound);
}

static double draw_unit(struct spase_search *s)
{
    return random_unit(s->options->seed, s->draws++);
}

/* --- worth of a list ------------------------------------------------------------------------- */

static int64_t latest_free(const struct spase_search *s)
{
    int64_t latest = 0;
    for (uint32_t n = 0; n < s->in->node_count; n++) {
        const struct spase_node *node = &s->in->nodes[n];
        int64_t last = s->list.slots[node->first_device + node->device_count - 1].free;
        if (last > latest) latest = last;
    }
    return latest;
}

static double worth_of(const struct spase_search *s, int64_t end)
{
    int64_t sum = 0;
    for (uint32_t d = 0; d < s->in->device_count; d++) sum += s->list.slots[d].free;
    return (double)end + mean_share * (double)sum / s->in->device_count;
}

/* Lists steps[first ..) on s->list, which is in its state before `first`; `end`: end so far. Returns false beyond
 * `most`. */
static bool list_rest(struct spase_search *s, const struct spase_step *steps, uint32_t first, double most,
                      int64_t *end, bool save)
{
    uint32_t devices = s->in->device_count;
    for (uint32_t i = first; i < s->in->job_count; i++) {
        const struct spase_mode *mode = &s->in->modes[steps[i].mode];
        int64_t start = spase_list_put(&s->list, mode, SPASE_ANY_NODE, NULL);
        if (start + mode->ticks > *end) *end = start + mode->ticks;
        if ((double)*end > most) return false;
        if (!save) continue;
        memcpy(s->saved + (size_t)(i + 1) * devices, s->list.slots, devices * sizeof *s->saved);
        s->ends[i + 1] = *end;
    }
    return true;
}

static void restore(struct spase_search *s, uint32_t place)
{
    memcpy(s->list.slots, s->saved + (size_t)place * s->in->device_count,
           s->in->device_count * sizeof *s->saved);
}

static void keep_if_best(struct spase_search *s, const struct spase_step *steps, int64_t end)
{
    if (end >= *s->value) return;
    *s->value = end;
    memcpy(s->best, steps, s->in->job_count * sizeof *steps);
    if (end <= s->options->bound) s->limits.over = true;
}

/* Lists s->current again from place `first` on, and keeps it if it is the best. */
static void accept(struct spase_search *s, uint32_t first)
{
    int64_t end = s->ends[first];
    restore(s, first);
    list_rest(s, s->current, first, HUGE_VAL, &end, true);
    s->worth = worth_of(s, end);
    keep_if_best(s, s->current, end);
}

static void begin_with(struct spase_search *s, const struct spase_step *steps)
{
    if (s->current != steps) memcpy(s->current, steps, s->in->job_count * sizeof *steps);
    accept(s, 0);
}

/* --- rules ----------------------------------------------------------------------------------- */

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

/* Returns the mode of least area among modes of at most `most` ticks, else the shortest. Areas of classes are compared
 * by the run time that the job could have there. */
static uint32_t thrifty_mode(const struct spase *in, const struct spase_job *job, int64_t most, uint32_t class)
{
    uint32_t best = UINT32_MAX, shortest = job->first_mode;
    for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
        const struct spase_mode *mode = &in->modes[m];
        if (mode->ticks < in->modes[shortest].ticks) shortest = m;
        if (mode->ticks > most || (class < in->class_count && mode->class != class)) continue;
        if (best == UINT32_MAX || spase_area(mode) < spase_area(&in->modes[best])) best = m;
    }
    return best == UINT32_MAX ? shortest : best;
}

enum rule { LONGEST_FIRST, LARGEST_FIRST, WIDEST_FIRST, RULES };

/* `share`: the share of the guess within which jobs are to end. */
static void by_rule(struct spase_search *s, double share, enum rule rule)
{
    const struct spase *in = s->in;
    int64_t most = share * s->guess < 0x1p60 ? (int64_t)(share * s->guess) : INT64_MAX;
    struct keyed *keyed = s->keyed;
    for (uint32_t j = 0; j < in->job_count; j++) {
        /* with several classes, jobs alternate: annealing finds better classes */
        uint32_t class = in->class_count > 1 ? j % (in->class_count + 1) : in->class_count;
        uint32_t m = thrifty_mode(in, &in->jobs[j], most, class);
        const struct spase_mode *mode = &in->modes[m];
        double key = rule == LONGEST_FIRST ? (double)mode->ticks : rule == LARGEST_FIRST
                         ? (double)spase_area(mode) : mode->devices + (double)mode->ticks / 0x1p50;
        keyed[j] = (struct keyed){key, j, m};
    }
    qsort(keyed, in->job_count, sizeof *keyed, compare_keyed);
    for (uint32_t i = 0; i < in->job_count; i++)
        s->current[i] = (struct spase_step){keyed[i].job, keyed[i].mode, SPASE_ANY_NODE};
    begin_with(s, s->current);
}

/* Returns a quick lower bound on the makespan. */
static int64_t least_makespan(const struct spase *in)
{
    int64_t area = 0, longest = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        uint32_t thrifty = thrifty_mode(in, job, INT64_MAX, in->class_count), shortest = thrifty_mode(in, job, 0, 0);
        area += spase_area(&in->modes[thrifty]);
        if (in->modes[shortest].ticks > longest) longest = in->modes[shortest].ticks;
    }
    return area / in->device_count > longest ? area / in->device_count : longest;
}

static void try_rules(struct spase_search *s)
{
    static const double shares[] = {0.5, 1, 0.15, 0.2, 0.25, 0.3, 0.34, 0.4, 0.45, 0.6, 0.7, 0.8, 0.9, 1.2, 2, 1e9};
    for (uint32_t rule = 0; rule < RULES; rule++)
        for (uint32_t i = 0; i < ARRAY_COUNT(shares) && !s->limits.over; i++) {
            by_rule(s, shares[i], rule);
            if (rule + i > 0 && clock_s() >= s->options->until_s) s->limits.over = true;
        }
}

/* --- annealing ------------------------------------------------------------------------------- */

static void change_mode(struct spase_search *s, uint32_t place)
{
    struct spase_step *step = &s->trial[place];
    const struct spase_job *job = &s->in->jobs[step->job];
    if (job->mode_count < 2) return;
    uint32_t other = job->first_mode + draw_below(s, job->mode_count - 1);
    step->mode = other + (other >= step->mode);
}

static void move_step(struct spase_step *steps, uint32_t from, uint32_t to)
{
    struct spase_step moved = steps[from];
    if (from < to) memmove(steps + from, steps + from + 1, (to - from) * sizeof *steps);
    else memmove(steps + to + 1, steps + to, (from - to) * sizeof *steps);
    steps[to] = moved;
}

/* Changes s->trial somewhere. Returns the first place that differs. */
static uint32_t change(struct spase_search *s)
{
    uint32_t n = s->in->job_count, a = draw_below(s, n), b = draw_below(s, n), kind = draw_below(s, 8);
    uint32_t first = a < b ? a : b;
    if (kind < 3 || n == 1) {
        change_mode(s, a);
        return a;
    }
    if (kind < 5) {
        struct spase_step step = s->trial[a];
        s->trial[a] = s->trial[b];
        s->trial[b] = step;
        return first;
    }
    if (kind == 7) change_mode(s, a);
    move_step(s->trial, a, b);
    return first;
}

static void anneal(struct spase_search *s, uint64_t length)
{
    uint32_t n = s->in->job_count;
    double temperature = hot * (double)*s->value / pow(n, 1.5), cooling = pow(cooling_all, 1.0 / (double)length);
    for (uint64_t i = 0; i < length && anytime_step(&s->limits); i++, temperature *= cooling) {
        memcpy(s->trial, s->current, n * sizeof *s->trial);
        uint32_t first = change(s);
        double most = s->worth - temperature * log(1 - draw_unit(s));
        int64_t end = s->ends[first];
        restore(s, first);
        if (!list_rest(s, s->trial, first, most, &end, false) || worth_of(s, end) > most) continue;
        struct spase_step *accepted = s->trial;
        s->trial = s->current;
        s->current = accepted;
        accept(s, first);
    }
}

/* Few jobs have many local optima, and a short round finds one: other starts help more. Many jobs need long rounds. */
static uint64_t longest_round(uint32_t jobs)
{
    double cube = pow(jobs, 3);
    return cube < SHORTEST_ROUND ? SHORTEST_ROUND : cube > LONGEST_ROUND ? LONGEST_ROUND : (uint64_t)cube;
}

enum status spase_search(const struct spase *in, const struct spase_search_options *options, bool known,
                         struct spase_step *steps, int64_t *value, uint64_t *iterations, struct error *err)
{
    struct spase_search s = {.in = in, .options = options, .best = steps, .value = value,
                             .limits = {.until_s = options->until_s, .clock_every = CLOCK_EVERY}};
    size_t n = in->job_count, states = (n + 1) * in->device_count;
    if (!known) *value = INT64_MAX;
    TRY(spase_list_init(&s.list, in, err));
    s.saved = alloc_zeroed(states, sizeof *s.saved);
    s.ends = alloc_zeroed(n + 1, sizeof *s.ends);
    s.current = alloc_zeroed(n, sizeof *s.current);
    s.trial = alloc_zeroed(n, sizeof *s.trial);
    s.keyed = alloc_zeroed(n, sizeof *s.keyed);
    if (!s.saved || !s.ends || !s.current || !s.trial || !s.keyed) {
        error_memory(err, "a search", states * sizeof *s.saved);
        goto out;
    }
    spase_list_clear(&s.list, options->free_at);
    memcpy(s.saved, s.list.slots, in->device_count * sizeof *s.saved);
    s.ends[0] = latest_free(&s);
    if (known && *value <= options->bound) s.limits.over = true;
    s.guess = (double)options->bound;
    if (s.guess < (double)least_makespan(in)) s.guess = (double)least_makespan(in);
    if (!s.limits.over) try_rules(&s);
    uint64_t longest = longest_round(in->job_count);
    for (uint64_t length = longest < FIRST_ROUND ? longest : FIRST_ROUND, round = 0;
         !s.limits.over && s.limits.steps < options->iterations; round++) {
        uint64_t left = options->iterations - s.limits.steps;
        if (round % 2 == 0) begin_with(&s, steps);
        else by_rule(&s, 0.15 + draw_unit(&s), draw_below(&s, RULES));
        anneal(&s, length < left ? length : left);
        if (length < longest) length *= 2;
    }
    *iterations = s.limits.steps;
out:
    spase_list_release(&s.list);
    free(s.saved);
    free(s.ends);
    free(s.current);
    free(s.trial);
    free(s.keyed);
    return err->status;
}
