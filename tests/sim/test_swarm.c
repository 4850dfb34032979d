/*
 * Swarms: the simulation against the same rules done slowly, against closed forms and renewal theory; kept and
 * lost time adds up; bounds against linear programmes that can be solved by hand; files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sim/swarm/swarm_bound.h"
#include "sim/swarm/swarm_io.h"
#include "tests/support/sim/support_swarm_reference.h"
#include "tests/support/support_json.h"
#include "tests/support/support_seed.h"

static uint64_t seed, drawn;

static uint64_t below(uint64_t bound) { return random_below(seed, drawn++, bound); }
static double unit(void) { return random_unit(seed, drawn++); }

static int set_seed(void **state)
{
    (void)state;
    if (seed == 0) seed = support_seed("test_swarm");
    drawn = 0;
    return 0;
}

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g is not within %g of %.17g", a, tolerance, b);
}

static enum status parse(const char *text, struct swarm *out, struct error *err)
{
    struct json_input *input;
    enum status status = test_json_parse(text, &input, err);
    *out = (struct swarm){0};
    if (!status) status = swarm_parse(input, out, err);
    json_input_destroy(input);
    return status;
}

static void must_parse(struct swarm *out, const char *format, ...) PRINTF_LIKE(2, 3);
static void must_parse(struct swarm *out, const char *format, ...)
{
    char text[32768];
    struct error err = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (parse(text, out, &err)) fail_msg("%s in %s", err.text, text);
}

/* Returns a result that lives as long as in->arena. */
static struct swarm_result run(struct swarm *in, uint32_t wiring, double rebalance_s)
{
    struct swarm_options options = {.wiring = wiring, .rebalance_s = rebalance_s, .seed = 7};
    struct swarm_result result;
    struct error err = {0};
    assert_int_equal(swarm_run(&in->arena, in, &options, &result, &err), STATUS_OK);
    return result;
}

/* --- closed forms ----------------------------------------------------------------------------- */

/* One stage on n equal peers: each has b / n microbatches of f + b seconds, then the ring and the update.
 * 12 / 3 (0.05 + 0.11) + 2 2 (30e6 / 3 / 2e6 + 2 0.004) + 0.3; the trainers' latency of the first pass. */
static void one_stage(void **state)
{
    (void)state;
    struct swarm in;
    must_parse(&in, "{'spillway_swarm': 1, 'stages': [{'forward': '50ms', 'backward': '110ms', 'update': '300ms', "
                    "'gradients': '30MB', 'boundary': '5MB'}], 'peers': [{'count': 3, 'up': '2MB/s', 'down': '3MB/s', "
                    "'latency': '4ms'}], 'batch': 48, 'microbatch': 4, 'under_way': 12, 'steps': 5}");
    struct swarm_result result = run(&in, SWARM_ROUND_ROBIN, HUGE_VAL);
    double averaging_s = 4 * (10e6 / 2e6 + 0.008) + 0.3;
    assert_true(result.ended && result.steps == 5);
    assert_near(result.averaging_s, 5 * averaging_s, 1e-9);
    assert_near(result.elapsed_s, 5 * (0.004 + 4 * 0.16 + averaging_s), 1e-9);
    assert_near(result.useful_s, 5 * 12 * 0.16, 1e-9);
    swarm_release(&in);
}

/* One microbatch at a time, two stages: there is nothing to wait for. Up 2 MB/s and down 1 MB/s, 3 MB either way:
 * latency 2 + (f + 3 + 2 2 + f) + (b + 3 + 2 2 + b). */
static void one_microbatch(void **state)
{
    (void)state;
    struct swarm in;
    must_parse(&in, "{'spillway_swarm': 1, 'stages': [{'forward': '1.25s', 'backward': '2.5s', 'count': 2, "
                    "'boundary': '3MB'}], 'peers': [{'count': 2, 'up': '2MB/s', 'down': '1MB/s', 'latency': '2s'}], "
                    "'batch': 7, 'under_way': 1, 'steps': 2}");
    for (uint32_t wiring = 0; wiring < SWARM_WIRING_COUNT; wiring++) {
        struct swarm_result result = run(&in, wiring, HUGE_VAL);
        struct swarm_bound bound;
        struct error err = {0};
        double each_s = 2 + 2 * (3 + 4) + 2 * 1.25 + 2 * 2.5;
        assert_near(result.elapsed_s, 2 * 7 * each_s, 1e-9);
        assert_int_equal(swarm_bound(&in, &result, false, &bound, &err), STATUS_OK);
        assert_int_equal(bound.kind, SWARM_BOUND_LATENCY);
        assert_near(bound.per_s, 1 / each_s, 1e-12);
    }
    swarm_release(&in);
}

/* Many equal peers in three stages: all of them work nearly all the time, at the bound of k / (f + b). */
static void steady_rate(void **state)
{
    (void)state;
    struct swarm in;
    must_parse(&in, "{'spillway_swarm': 1, 'stages': [{'forward': '50ms', 'backward': '110ms', 'count': 3, "
                    "'boundary': '1MB'}], 'peers': [{'count': 12, 'up': '1GB/s', 'down': '1GB/s'}], 'batch': 6000, "
                    "'trainers': 2, 'under_way': 32, 'smoothing': 0.02, 'steps': 2}");
    for (uint32_t wiring = 0; wiring < SWARM_WIRING_COUNT; wiring++) {
        struct swarm_result result = run(&in, wiring, HUGE_VAL);
        struct swarm_bound bound;
        struct error err = {0};
        double rate = 12000 / result.elapsed_s;
        assert_int_equal(swarm_bound(&in, &result, false, &bound, &err), STATUS_OK);
        assert_near(bound.per_s, 4 / 0.16, 1e-9);
        assert_true(rate <= bound.per_s);
        assert_true(rate >= (wiring == SWARM_STOCHASTIC ? 0.97 : 0.99) * bound.per_s);
    }
    /* links of 6 MB/s: a peer of the stage in the middle takes in and gives out 2 MB of each microbatch, others 1 MB.
     * Rates of 6, 3 and 6 a peer: 3, 6 and 3 peers are placed there, and all stages can do 18 */
    for (uint32_t g = 0; g < in.group_count; g++) in.groups[g].up_bytes_per_s = in.groups[g].down_bytes_per_s = 6e6;
    struct swarm_result result = run(&in, SWARM_SHORTEST_QUEUE, HUGE_VAL);
    assert_true(12000 / result.elapsed_s <= 18);
    assert_true(12000 / result.elapsed_s >= 0.95 * 18);
    swarm_release(&in);
}

/* A peer three times as fast does three times the work, by the trainer's measurements. */
static void work_follows_speed(void **state)
{
    (void)state;
    struct swarm in;
    must_parse(&in, "{'spillway_swarm': 1, 'stages': [{'forward': '1s', 'backward': '2s'}], 'peers': [{'up': '1GB/s', "
                    "'down': '1GB/s', 'speed': 3}, {'up': '1GB/s', 'down': '1GB/s'}], 'batch': 4000, 'under_way': 8, "
                    "'steps': 2}");
    struct swarm_result result = run(&in, SWARM_STOCHASTIC, HUGE_VAL);
    assert_near((double)result.peers[0].passes / (double)result.peers[1].passes, 3, 0.15);
    result = run(&in, SWARM_ROUND_ROBIN, HUGE_VAL);
    assert_true(result.peers[0].passes == result.peers[1].passes);
    swarm_release(&in);
}

/* --- chance ----------------------------------------------------------------------------------- */

/*
 * 300 peers that live 100 s and are away 40 s on average, both exponential: each is there for 100 / 140 of the time,
 * and goes once in 140 s. Over T = 28000 s the share of presence has a mean of 5/7, and of 1 / 280 (40/140)^2 more
 * because it begins there: below the standard error of it, which comes from the sample.
 */
static void presence_is_a_renewal_process(void **state)
{
    (void)state;
    struct swarm in;
    enum { PEERS = 300 };
    double sum = 0, squares = 0, life_s = 100, away_s = 40, time_s = 28000;
    must_parse(&in, "{'spillway_swarm': 1, 'stages': [{'forward': '1s', 'backward': '2s'}], 'peers': [{'count': %d, "
                    "'up': '1GB/s', 'down': '1GB/s', 'failures': {'mtbf': '%gs', 'repair': '%gs'}}], 'batch': 1000000, "
                    "'under_way': 600, 'time': '%gs'}", PEERS, life_s, away_s, time_s);
    struct swarm_result result = run(&in, SWARM_SHORTEST_QUEUE, HUGE_VAL);
    for (uint32_t p = 0; p < PEERS; p++) {
        double share = result.peers[p].present_s / time_s;
        sum += share;
        squares += share * share;
    }
    double mean = sum / PEERS, error = sqrt((squares / PEERS - mean * mean) / (PEERS - 1));
    double start = away_s * life_s / (life_s + away_s) * (away_s / (life_s + away_s)) / time_s;
    assert_near(mean, life_s / (life_s + away_s) + start, 5 * error);
    assert_true(error < 0.01);
    /* a renewal process of cycles of variance life^2 + away^2: its counts have variance T var / mean^3 */
    double cycle_s = life_s + away_s, expected = PEERS * time_s / cycle_s;
    double spread = sqrt(PEERS * time_s * (life_s * life_s + away_s * away_s) / (cycle_s * cycle_s * cycle_s));
    assert_near((double)result.failures, expected, 5 * spread + PEERS);
    swarm_release(&in);
}

/* --- the same rules, slowly ------------------------------------------------------------------- */

static double any(double least, double most) { return least + (most - least) * unit(); }

/* Up to four stages on up to sixteen peers, with a trace of failures: all unlike each other, or in groups that fail by
 * chance as well. (Peers that are alike are equals but for rounding, so that the last bit may choose between them.) */
static void random_swarm(struct swarm *out, bool chance)
{
    char text[32768], *end = text, *const stop = text + sizeof text;
    uint32_t stages = 1 + (uint32_t)below(4);
    uint32_t groups = chance ? 1 + (uint32_t)below(3) : stages + (uint32_t)below(SLOW_PEERS_MAX - stages + 1);
    end += snprintf(end, (size_t)(stop - end), "{'spillway_swarm': 1, 'stages': [");
    for (uint32_t s = 0; s < stages; s++)
        end += snprintf(end, (size_t)(stop - end),
                        "%s{'forward': '%.9fs', 'backward': '%.9fs', 'update': '%.9fs', 'boundary': '%.0f B', 'state': "
                        "'%.0f B', 'gradients': '%.0f B'}", s > 0 ? ", " : "", any(0.1, 1), any(0.2, 2), any(0, 0.3),
                        any(0, 1) < 0.2 ? 0 : any(1e5, 1e6), any(0, 1) < 0.3 ? 0 : any(1e6, 1e7), any(0, 1e6));
    end += snprintf(end, (size_t)(stop - end), "], 'peers': [");
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t count = chance ? stages + (uint32_t)below(4) : 1;
        end += snprintf(end, (size_t)(stop - end),
                        "%s{'count': %u, 'speed': %.9f, 'up': '%.0f B/s', 'down': '%.0f B/s', 'latency': '%.9fs', "
                        "'failures': {", g > 0 ? ", " : "", count, any(0.5, 2), any(3e5, 3e6), any(3e5, 3e6),
                        any(0, 0.1));
        if (chance)
            end += snprintf(end, (size_t)(stop - end),
                            "'mtbf': '%.3fs', 'shape': %.3f, 'repair': '%.3fs', 'stragglers': {'every': '30s', 'for': "
                            "'5s', 'factor': 2.5}, ", any(10, 200), any(0.7, 2), any(0, 20));
        end += snprintf(end, (size_t)(stop - end), "'events': [");
        for (uint32_t i = 0, events = (uint32_t)below(chance ? 8 : 4); i < events; i++)
            end += snprintf(end, (size_t)(stop - end), "%s{'at': '%.9fs', 'for': '%.9fs', 'device': %u%s}",
                            i > 0 ? ", " : "", any(0, 60), any(0, 20), (uint32_t)below(count),
                            below(4) ? "" : ", 'factor': 3");
        end += snprintf(end, (size_t)(stop - end), "]}}");
    }
    snprintf(end, (size_t)(stop - end),
             "], 'batch': %u, 'trainers': %u, 'under_way': %u, 'timeout': '%.9fs', 'ban': '%.9fs', 'smoothing': %.6f, "
             "'rebalance': '%.3fs', 'steps': %u, 'time': '200s'}",
             2 + (uint32_t)below(30), 1 + (uint32_t)below(4), 1 + (uint32_t)below(16), any(0.01, 3), any(0, 10),
             any(0.05, 1), any(1, 30), 1 + (uint32_t)below(4));
    must_parse(out, "%s", text);
}

static bool is_near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance;
}

static bool is_same(const struct swarm *in, const struct swarm_result *fast, const struct slow_result *slow)
{
    double tolerance = 1e-9 * slow->elapsed_s;
    for (uint32_t p = 0; p < in->peer_count; p++)
        if (fast->peers[p].passes != slow->passes[p] || !is_near(fast->peers[p].busy_s, slow->busy_s[p], tolerance) ||
            !is_near(fast->peers[p].present_s, slow->present_s[p], tolerance))
            return false;
    return fast->steps == slow->steps && fast->repeated == slow->repeated && fast->failures == slow->failures &&
           fast->unanswered == slow->unanswered && fast->given_up == slow->given_up &&
           is_near(fast->elapsed_s, slow->elapsed_s, tolerance) &&
           is_near(fast->averaging_s, slow->averaging_s, tolerance) &&
           is_near(fast->useful_s, slow->useful_s, tolerance) && is_near(fast->lost_s, slow->lost_s, tolerance);
}

/* The same swarm a hair further apart: where two things happen at the same time but for rounding, such as the end of a
 * repeated pass and the end of a step, each of the two programs may take the other first. Not here. */
static bool is_same_nearby(const struct swarm *in, uint32_t wiring)
{
    bool same = false;
    struct swarm nearby = *in;
    nearby.groups = malloc(in->group_count * sizeof *nearby.groups);
    assert_non_null(nearby.groups);
    for (int step = 1; step <= 3 && !same; step++) {
        struct slow_result slow;
        memcpy(nearby.groups, in->groups, in->group_count * sizeof *nearby.groups);
        for (uint32_t g = 0; g < in->group_count; g++) nearby.groups[g].latency_s *= 1 - 1e-10 * step * (g + 1);
        struct swarm_result fast = run(&nearby, wiring, HUGE_VAL);
        slow_swarm(&nearby, wiring, &slow);
        same = is_same(&nearby, &fast, &slow);
    }
    free(nearby.groups);
    return same;
}

static void agrees_with_the_slow_one(void **state)
{
    (void)state;
    enum { TIES_MAX = 3 }; /* one in some 15 000 was seen */
    uint64_t failures = 0, repeated = 0, given_up = 0, unfinished = 0, ties = 0;
    for (int trial = 0; trial < 600; trial++) {
        struct swarm in;
        struct slow_result slow;
        uint32_t wiring = (uint32_t)below(SWARM_FIXED);
        random_swarm(&in, false);
        struct swarm_result fast = run(&in, wiring, HUGE_VAL);
        slow_swarm(&in, wiring, &slow);
        if (!is_same(&in, &fast, &slow) && (++ties > TIES_MAX || !is_same_nearby(&in, wiring)))
            fail_msg("trial %d of seed %llu, %s: %.17g s and %.17g, useful %.17g and %.17g", trial,
                     (unsigned long long)seed, swarm_wiring_names[wiring], fast.elapsed_s, slow.elapsed_s,
                     fast.useful_s, slow.useful_s);
        failures += fast.failures;
        repeated += fast.repeated;
        given_up += fast.given_up;
        unfinished += !fast.ended;
        swarm_release(&in);
    }
    /* or these trials would show nothing */
    assert_true(failures > 1000 && repeated > 100 && given_up > 5 && unfinished > 0 && unfinished < 300);
}

/* --- what adds up ----------------------------------------------------------------------------- */

struct witness {
    double busy_s, end_s[SWARM_PEERS_MAX];
    uint64_t passes;
};

static void see(void *context, const struct swarm_span *span)
{
    struct witness *w = context;
    assert_true(span->begin_s >= w->end_s[span->peer] && span->end_s >= span->begin_s);
    w->end_s[span->peer] = span->end_s;
    w->busy_s += span->end_s - span->begin_s;
    w->passes += !span->lost;
}

struct told {
    double share;
    uint64_t times;
};

/* Progress goes from 0 to 1 and never back. */
static void see_progress(void *context, double share)
{
    struct told *told = context;
    assert_true(share >= told->share && share <= 1);
    told->share = share;
    told->times++;
}

static void everything_adds_up(void **state)
{
    (void)state;
    static struct witness w, again;
    uint64_t moves = 0, told_times = 0;
    for (int trial = 0; trial < 400; trial++) {
        struct swarm in;
        struct swarm_result result, second;
        struct swarm_bound bound;
        struct error err = {0};
        w = again = (struct witness){0};
        random_swarm(&in, true);
        struct swarm_options options = {.wiring = (uint32_t)below(SWARM_WIRING_COUNT), .seed = below(1000),
                                        .rebalance_s = below(2) ? in.rebalance_s : HUGE_VAL, .on_span = see,
                                        .context = &w};
        bool moving = options.rebalance_s < HUGE_VAL && options.wiring != SWARM_FIXED;
        assert_int_equal(swarm_run(&in.arena, &in, &options, &result, &err), STATUS_OK);
        struct told told = {0};
        options.context = &again;
        options.on_progress = see_progress; /* changes nothing */
        options.progress_context = &told;
        assert_int_equal(swarm_run(&in.arena, &in, &options, &second, &err), STATUS_OK);
        assert_memory_equal(&w, &again, sizeof w);
        told_times += told.times;
        assert_memory_equal(result.peers, second.peers, in.peer_count * sizeof *result.peers);
        assert_memory_equal(result.stages, second.stages, in.stage_count * sizeof *result.stages);
        double busy_s = 0, stage_s = 0, open_now_s = 0, tolerance = 1e-9 * result.elapsed_s * in.peer_count;
        uint64_t passes = 0;
        for (uint32_t p = 0; p < in.peer_count; p++) {
            const struct swarm_peer_result *peer = &result.peers[p];
            assert_true(peer->busy_s <= peer->working_s + tolerance && peer->working_s <= peer->present_s + tolerance);
            assert_true(peer->present_s <= result.elapsed_s + tolerance);
            busy_s += peer->busy_s;
            passes += peer->passes;
        }
        for (uint32_t s = 0; s < in.stage_count; s++) {
            stage_s += result.stages[s].busy_s;
            assert_true(result.stages[s].passes >= 2 * (uint64_t)result.steps * in.batch);
        }
        open_now_s = busy_s - w.busy_s; /* of passes that had not come to their end */
        assert_true(open_now_s >= -tolerance && open_now_s <= result.open_s + tolerance);
        assert_true(passes == w.passes);
        assert_near(stage_s, busy_s, tolerance);
        assert_near(result.useful_s + result.lost_s + result.open_s, busy_s, tolerance);
        assert_int_equal(swarm_bound(&in, &result, moving, &bound, &err), STATUS_OK);
        assert_true((double)result.steps * in.batch <= bound.per_s * result.elapsed_s * (1 + 1e-9));
        assert_true(moving || result.moves == 0);
        moves += result.moves;
        swarm_release(&in);
    }
    assert_true(moves > 100);
    assert_true(told_times > 100);
}

/* --- rebalancing ------------------------------------------------------------------------------ */

/* Nine of twelve equal peers begin in the first stage. Balanced are 4, 4 and 4, which they reach after three
 * moves at least; the rate then is 4 / 2 times the rate of a stage of two. */
static void peers_move_where_they_are_needed(void **state)
{
    (void)state;
    struct swarm in;
    must_parse(&in, "{'spillway_swarm': 1, 'stages': [{'forward': '50ms', 'backward': '110ms', 'count': 3, 'state': "
                    "'1MB'}], 'peers': [{'count': 8, 'up': '1GB/s', 'down': '1GB/s', 'stage': 0}, {'count': 2, 'up': "
                    "'1GB/s', 'down': '1GB/s', 'stage': 1}, {'count': 2, 'up': '1GB/s', 'down': '1GB/s', 'stage': 2}], "
                    "'batch': 500, 'under_way': 48, 'steps': 20}");
    struct swarm_result kept = run(&in, SWARM_SHORTEST_QUEUE, HUGE_VAL);
    struct swarm_result moved = run(&in, SWARM_SHORTEST_QUEUE, 1);
    uint32_t there[3] = {0};
    for (uint32_t p = 0; p < in.peer_count; p++) there[moved.peers[p].stage]++;
    assert_true(kept.moves == 0 && moved.moves == 4);
    assert_true(there[0] == 4 && there[1] == 4 && there[2] == 4);
    assert_true(moved.elapsed_s < 0.7 * kept.elapsed_s);
    /* in the end there is nothing to gain, and no peer moves for as long as the run goes on */
    in.steps = 200;
    assert_true(run(&in, SWARM_SHORTEST_QUEUE, 1).moves == 4);
    swarm_release(&in);
}

/* The only peer of stage 1 goes for a day. Without rebalancing everything waits for it. */
static void an_empty_stage_takes_a_peer(void **state)
{
    (void)state;
    struct swarm in;
    must_parse(&in, "{'spillway_swarm': 1, 'stages': [{'forward': '50ms', 'backward': '110ms', 'count': 2, 'state': "
                    "'10MB'}], 'peers': [{'count': 3, 'up': '1MB/s', 'down': '1MB/s', 'stage': 0}, {'up': '1GB/s', "
                    "'down': '1GB/s', 'stage': 1, 'failures': {'events': [{'at': '10s', 'for': '1d', 'device': 0}]}}], "
                    "'batch': 200, 'steps': 3}");
    struct swarm_result kept = run(&in, SWARM_STOCHASTIC, HUGE_VAL), moved = run(&in, SWARM_STOCHASTIC, 3600);
    assert_true(kept.elapsed_s > 86400 && kept.ended);
    assert_true(moved.elapsed_s < 500 && moved.ended && moved.moves == 1);
    swarm_release(&in);
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* Returns the bound if all peers are always present. */
static double bound_of(struct swarm *in)
{
    struct swarm_result result = {.elapsed_s = 1};
    struct swarm_bound bound;
    struct error err = {0};
    result.peers = calloc(in->peer_count, sizeof *result.peers);
    for (uint32_t p = 0; p < in->peer_count; p++) result.peers[p].working_s = 1;
    assert_int_equal(swarm_bound(in, &result, true, &bound, &err), STATUS_OK);
    free(result.peers);
    return bound.per_s;
}

struct pair {
    double first, second, count; /* rates in the two stages */
};

static int by_ratio(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    double left = x->first * y->second, right = y->first * x->second;
    return (left < right) - (left > right);
}

/* Each peer goes to the stage for which it is relatively best, and one group is divided. */
static double best_of_two(struct pair *pairs, uint32_t count)
{
    double second = 0, first = 0;
    qsort(pairs, count, sizeof *pairs, by_ratio);
    for (uint32_t i = 0; i < count; i++) second += pairs[i].count * pairs[i].second;
    for (uint32_t i = 0; i < count; i++) {
        const struct pair *p = &pairs[i];
        if (first + p->count * p->first >= second - p->count * p->second) {
            double x = (second - first) / (p->first + p->second); /* first + x first = second - x second */
            return first + x * p->first;
        }
        first += p->count * p->first;
        second -= p->count * p->second;
    }
    return first;
}

static void bounds_are_the_best_prices(void **state)
{
    (void)state;
    for (int trial = 0; trial < 300; trial++) {
        struct swarm in = {.stage_count = 2 + (uint32_t)below(2), .group_count = 1 + (uint32_t)below(5),
                           .batch = SWARM_BATCH_MAX, .trainers = 256, .under_way = 256};
        struct swarm_stage stages[3] = {{0}};
        struct swarm_group groups[5];
        struct swarm_passes passes[5][3];
        struct pair pairs[5];
        in.stages = stages;
        in.groups = groups;
        for (uint32_t g = 0; g < in.group_count; g++) {
            groups[g] = (struct swarm_group){.first = in.peer_count, .count = 1 + (uint32_t)below(4),
                                             .passes = passes[g],
                                             .up_bytes_per_s = 1e9, .down_bytes_per_s = 1e9};
            in.peer_count += groups[g].count;
            for (uint32_t s = 0; s < 3; s++) passes[g][s] = (struct swarm_passes){any(0.1, 1), any(0.1, 1), 0};
            pairs[g] = (struct pair){swarm_rate(&in, g, 0), swarm_rate(&in, g, 1), groups[g].count};
        }
        double bound = bound_of(&in);
        if (in.stage_count == 2) {
            assert_near(bound, best_of_two(pairs, in.group_count), 1e-9 * bound);
            continue;
        }
        double best = HUGE_VAL;
        enum { GRID = 60 };
        for (int i = 0; i <= GRID; i++)
            for (int k = 0; k <= GRID - i; k++) {
                double y[3] = {(double)i / GRID, (double)k / GRID, (double)(GRID - i - k) / GRID}, sum = 0;
                for (uint32_t g = 0; g < in.group_count; g++)
                    sum += groups[g].count * fmax(y[0] * swarm_rate(&in, g, 0),
                                                  fmax(y[1] * swarm_rate(&in, g, 1), y[2] * swarm_rate(&in, g, 2)));
                best = fmin(best, sum);
            }
        assert_true(bound <= best * (1 + 1e-12) && bound >= best * (1 - 3.0 / GRID));
    }
}

/* --- networks --------------------------------------------------------------------------------- */

/* Four blocks of width C in two stages, fp32: a boundary of 4 B T C bytes; 2 (12 C^2 + 13 C) parameters in blocks.
 * Twice the width is twice the boundary, and blocks take nearly four times as long: the square-cube law. */
static void wide_layers_have_little_to_say(void **state)
{
    (void)state;
    double ratio[2], forward_s[2];
    for (int i = 0; i < 2; i++) {
        struct swarm in;
        unsigned width = 4096u << i;
        must_parse(&in, "{'spillway_swarm': 1, 'network': {'model_type': 'gpt2', 'n_embd': %u, 'n_layer': 8, "
                        "'n_head': 32, 'n_positions': 512, 'vocab_size': 1000}, 'cut': 4, 'microbatch': 2, 'batch': "
                        "32, 'sequence': 256, 'peers': [{'count': 4, 'device': 't4-16gb', 'up': '12.5MB/s', 'down': "
                        "'12.5MB/s'}]}", width);
        double parameters = 2.0 * (12.0 * width * width + 13.0 * width);
        assert_near(in.stages[1].boundary_bytes, 4.0 * 2 * 256 * width, 0);
        assert_near(in.stages[1].gradient_bytes, 4 * parameters, 0);
        assert_near(in.stages[1].state_bytes, 12 * parameters, 0);
        forward_s[i] = in.groups[0].passes[1].forward_s;
        ratio[i] = forward_s[i] / in.stages[1].boundary_bytes;
        swarm_release(&in);
    }
    assert_near(forward_s[1] / forward_s[0], 4, 0.1);
    assert_near(ratio[1] / ratio[0], 2, 0.05);
}

/* --- files ------------------------------------------------------------------------------------ */

static void assert_refused(const char *text, const char *message)
{
    struct swarm in;
    struct error err = {0};
    assert_int_equal(parse(text, &in, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, message);
    swarm_release(&in);
}

#define STAGES "'stages': [{'forward': '1s', 'backward': '2s', 'count': 2}], "
#define PEER "'up': '1MB/s', 'down': '1MB/s'"

static void mistakes_have_places(void **state)
{
    (void)state;
    assert_refused("{'spillway_swarm': 2}", "test:1:20: 'spillway_swarm' is 2 (expected 1)");
    assert_refused("{'spillway_swarm': 1, 'batch': 10, 'microbatch': 4}",
                   "test:1:32: batch 10 is not a multiple of microbatch 4");
    assert_refused("{'spillway_swarm': 1, 'batch': 10,\n 'trainers': 200, 'under_way': 1000}",
                   "test:2:32: 200 trainers with 1000 microbatches each (limit is 65536 in all)");
    assert_refused("{'spillway_swarm': 1, 'batch': 10,\n 'wiring': 'random'}",
                   "test:2:12: unknown wiring 'random' (expected stochastic, round-robin, shortest-queue or fixed)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, 'stages': [], 'peers': []}",
                   "test:1:45: no stages (expected at least one)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, 'stages': [{'forward': '1s'}]}",
                   "test:1:46: missing key 'backward'");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, " STAGES "'peers': []}",
                   "test:1:105: 0 entries of peers (expected 1 to 64)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, " STAGES "'peers': [{'count': 1, " PEER "}]}",
                   "test:1:105: stage 1 has no peer (1 peers, 2 stages)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, " STAGES "\n'peers': [{'count': 2, " PEER ", 'stage': 2}]}",
                   "test:2:65: 'stage' is 2 (expected 0 to 1)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, " STAGES "\n'peers': [{'count': 2, " PEER ", 'sped': 2}]}",
                   "test:2:56: unknown key 'sped' (did you mean 'speed'?)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, " STAGES "\n'peers': [{'count': 2, 'up': '8 s', 'down': "
                                                               "'1MB/s'}]}",
                   "test:2:30: 'up': '8 s' has the unit 's' (expected a rate such as 24GB/s)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, " STAGES "\n'peers': [{'count': 2, " PEER
                   ", 'failures': {'mtbf': '1h', 'spares': 2}}]}",
                   "test:2:68: spares, restart, checkpoint, elastic, least and work are only for runs that stop when "
                   "a device fails (expected mtbf, shape, repair, stragglers and events)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, " STAGES "\n'peers': [{'count': 2, " PEER
                   ", 'failures': {'events': [{'at': '1h', 'for': '1h', 'device': 2}]}}]}",
                   "test:2:116: 'device' is 2 (expected 0 to 1)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, 'network': 'gpt2', 'cut': 13, 'peers': []}",
                   "test:1:46: 12 layers on 13 stages of 1 chunk (expected at least one each)");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, 'network': 'gpt2', 'cut': 2, 'peers': [{'count': 2, " PEER "}]}",
                   "test:1:74: missing key 'device'");
    assert_refused("{'spillway_swarm': 1, 'batch': 1, 'network': 'gpt2', 'cut': 2, 'sequence': 2048, 'peers': []}",
                   "test:1:46: the sequence has 2048 tokens, and the network 1024 positions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage),
        cmocka_unit_test(one_microbatch),
        cmocka_unit_test(steady_rate),
        cmocka_unit_test(work_follows_speed),
        cmocka_unit_test(presence_is_a_renewal_process),
        cmocka_unit_test_setup(agrees_with_the_slow_one, set_seed),
        cmocka_unit_test_setup(everything_adds_up, set_seed),
        cmocka_unit_test(peers_move_where_they_are_needed),
        cmocka_unit_test(an_empty_stage_takes_a_peer),
        cmocka_unit_test_setup(bounds_are_the_best_prices, set_seed),
        cmocka_unit_test(wide_layers_have_little_to_say),
        cmocka_unit_test(mistakes_have_places),
    };
    return cmocka_run_group_tests_name("sim/swarm/swarm.h", tests, NULL, NULL);
}
