/*
 * Serving: the simulation against an event by event one, against queueing theory, cuts against all cuts,
 * bounds against schedules by brute force, files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "sim/placement/serving_bound.h"
#include "sim/serving/served_network.h"
#include "tests/support/sim/support_serving.h"
#include "tests/support/support_seed.h"

static uint64_t seed, drawn;

static uint64_t below(uint64_t bound) { return random_below(seed, drawn++, bound); }
static double unit(void) { return random_unit(seed, drawn++); }

static int set_seed(void **state)
{
    (void)state;
    if (seed == 0) seed = support_seed("test_serving");
    drawn = 0;
    return 0;
}

/* --- cuts ------------------------------------------------------------------------------------- */

/* The slowest stage of the best cut of layers [from, count) into `stages`, all cuts tried. */
static double best_cut(const struct serving_degree *d, uint32_t from, uint32_t count, uint32_t stages)
{
    double best_s = HUGE_VAL, sum_s = 0;
    if (stages == 1) {
        for (uint32_t l = from; l < count; l++) sum_s += d->layer_s[l];
        return from < count ? sum_s : HUGE_VAL;
    }
    for (uint32_t end = from + 1; end < count; end++) {
        sum_s += d->layer_s[end - 1];
        best_s = fmin(best_s, fmax(sum_s + d->hop_s[end - 1], best_cut(d, end, count, stages - 1)));
    }
    return best_s;
}

static void cuts_are_best(void **state)
{
    (void)state;
    for (int trial = 0; trial < 300; trial++) {
        enum { LAYERS_MAX_HERE = 9 };
        double layer_s[LAYERS_MAX_HERE], hop_s[LAYERS_MAX_HERE] = {0};
        uint64_t bytes[LAYERS_MAX_HERE], all = 0;
        uint32_t layers = 1 + (uint32_t)below(LAYERS_MAX_HERE), stages = 1 + (uint32_t)below(layers);
        for (uint32_t l = 0; l < layers; l++) {
            layer_s[l] = 0.1 + unit();
            hop_s[l] = l + 1 < layers ? 0.3 * unit() : 0;
            bytes[l] = below(100);
            all += bytes[l];
        }
        static const double alone = 1;
        struct serving_degree degree = {1, layer_s, bytes, hop_s, &alone};
        struct serving_kind kind = {"k", layers, 1, 1, &degree};
        struct arena arena = {0};
        struct stage_cut cut;
        struct error err = {0};
        assert_int_equal(stage_cut_make(&arena, &kind, (struct serving_shape){1, stages}, &cut, &err), STATUS_OK);
        double slowest_s = 0, latency_s = 0;
        for (uint32_t s = 0; s < stages; s++) {
            slowest_s = fmax(slowest_s, cut.stage_s[s]);
            latency_s += cut.stage_s[s];
            all -= cut.stage_bytes[s];
        }
        assert_true(all == 0);
        support_serving_near(slowest_s, best_cut(&degree, 0, layers, stages), 1e-12);
        support_serving_near(cut.slowest_s, slowest_s, 1e-12);
        support_serving_near(cut.latency_s, latency_s, 1e-12);
        assert_int_equal(stage_cut_make(&arena, &kind, (struct serving_shape){1, layers + 1}, &cut, &err), STATUS_OK);
        assert_null(cut.stage_s);
        assert_int_equal(stage_cut_make(&arena, &kind, (struct serving_shape){2, 1}, &cut, &err), STATUS_OK);
        assert_null(cut.stage_s);
        arena_release(&arena);
    }
}

/* --- the simulation, event by event ----------------------------------------------------------- */

/* A request on its way: its next stage, and when the one that it is in ends. */
struct under_way {
    double left_s[8]; /* when it left each stage */
    uint32_t request, stage;
    double ends_s, ended_s; /* of this stage; of the one before */
    bool running, done;
};

/* A group as a list of requests in the order of their arrival, moved on event by event. */
struct slow_group {
    struct under_way list[512];
    uint32_t count;
};

/* Handles everything that happens in a group up to `until_s`, always the earliest event first. */
static void advance(struct slow_group *g, const struct stage_cut *const *cuts, uint32_t stages, double until_s)
{
    for (;;) {
        double first_s = HUGE_VAL;
        struct under_way *what = NULL;
        for (uint32_t i = 0; i < g->count; i++) {
            struct under_way *u = &g->list[i];
            if (u->done) continue;
            double at_s = u->ends_s;
            if (!u->running) { /* it begins when the requests ahead have left its stage */
                at_s = u->ended_s;
                for (uint32_t k = 0; k < i; k++)
                    at_s = fmax(at_s, g->list[k].stage > u->stage ? g->list[k].left_s[u->stage] : HUGE_VAL);
            }
            if (at_s < first_s) {
                first_s = at_s;
                what = u;
            }
        }
        if (!what || first_s > until_s) return;
        if (!what->running) {
            what->running = true;
            what->ends_s = first_s + cuts[what->request]->stage_s[what->stage];
        } else {
            what->running = false;
            what->ended_s = what->left_s[what->stage] = what->ends_s;
            what->done = ++what->stage == stages;
        }
    }
}

/* Returns the time when the last request of the group would end without further arrivals. */
static double ends_s(const struct slow_group *g, const struct stage_cut *const *cuts, uint32_t stages, uint32_t which)
{
    struct slow_group *copy = malloc(sizeof *copy);
    assert_non_null(copy);
    *copy = *g;
    advance(copy, cuts, stages, HUGE_VAL);
    assert_true(copy->list[which].done);
    double end_s = copy->list[which].ended_s;
    free(copy);
    return end_s;
}

static void slow_simulation(const struct serving_cuts *cuts, const struct serving_placement *placement,
                            const struct traffic *traffic, bool admit_all, double *latency_s)
{
    const struct serving *in = cuts->in;
    struct slow_group *groups = calloc(placement->group_count, sizeof *groups);
    const struct stage_cut **of = calloc((size_t)placement->group_count * traffic->count, sizeof *of);
    for (uint32_t r = 0; r < traffic->count; r++) {
        const struct traffic_request *request = &traffic->requests[r];
        const struct serving_model *model = &in->models[request->model];
        uint32_t best = UINT32_MAX, fewest = UINT32_MAX;
        latency_s[r] = NAN;
        for (uint32_t g = 0; g < placement->group_count; g++) {
            const struct serving_group *group = &placement->groups[g];
            uint32_t here = 0, length = 0;
            of[(size_t)g * traffic->count + r] = serving_cut(cuts, group->shape, model->kind);
            advance(&groups[g], &of[(size_t)g * traffic->count], group->shape.pipeline, request->at_s);
            for (uint32_t i = 0; i < group->model_count; i++) here += group->models[i] == request->model;
            for (uint32_t i = 0; i < groups[g].count; i++) length += !groups[g].list[i].done;
            if (here && length < fewest) {
                fewest = length;
                best = g;
            }
        }
        if (best == UINT32_MAX) continue;
        struct slow_group *group = &groups[best];
        const struct stage_cut **own = &of[(size_t)best * traffic->count];
        uint32_t stages = placement->groups[best].shape.pipeline;
        group->list[group->count++] = (struct under_way){.request = r, .ended_s = request->at_s};
        latency_s[r] = ends_s(group, own, stages, group->count - 1) - request->at_s + in->overhead_s;
        if (latency_s[r] <= model->objective_s * (1 + SERVING_OBJECTIVE_SLACK) || admit_all) continue;
        latency_s[r] = NAN;
        group->count--;
    }
    free(groups);
    free(of);
}

/* Groups of random shapes with random models that they can be cut for. */
static void random_placement(const struct serving_cuts *cuts, struct arena *arena, struct serving_placement *out)
{
    const struct serving *in = cuts->in;
    struct error err = {0};
    *out = (struct serving_placement){0};
    assert_int_equal(ARENA_NEW(arena, in->device_count, out->groups, &err), STATUS_OK);
    for (uint32_t left = in->device_count; left > 0;) {
        struct serving_shape shape = cuts->shapes[below(cuts->shape_count)];
        if (serving_shape_devices(shape) > left) continue;
        struct serving_group *group = &out->groups[out->group_count++];
        left -= serving_shape_devices(shape);
        *group = (struct serving_group){.shape = shape};
        assert_int_equal(ARENA_NEW(arena, in->model_count, group->models, &err), STATUS_OK);
        for (uint32_t m = 0; m < in->model_count; m++) {
            if (!serving_cut(cuts, shape, in->models[m].kind) || below(3) == 0) continue;
            group->models[group->model_count++] = m;
            err.status = STATUS_OK;
            if (placement_check(cuts, out, &err)) group->model_count--;
        }
    }
}

static void agrees_event_by_event(void **state)
{
    (void)state;
    for (int trial = 0; trial < 200; trial++) {
        struct serving in;
        struct serving_cuts cuts;
        struct serving_placement placement;
        struct traffic traffic;
        struct error err = {0};
        bool admit_all = below(2), objectives = below(4) > 0;
        double *fast, *slow;
        support_serving_random(&in, seed, drawn += 100, objectives);
        support_serving_cuts(&in, &cuts);
        random_placement(&cuts, &in.arena, &placement);
        assert_int_equal(traffic_make(&in, below(UINT32_MAX), 1, &traffic, &err), STATUS_OK);
        if (placement.group_count == 0) fail();
        if (traffic.count <= 400) { /* the slow simulator has room for 400 requests */
            uint32_t attained = support_serve(&cuts, &placement, &traffic, admit_all, &fast), counted = 0;
            slow = calloc(traffic.count + 1, sizeof *slow);
            slow_simulation(&cuts, &placement, &traffic, admit_all, slow);
            for (uint32_t r = 0; r < traffic.count; r++) {
                double objective_s = in.models[traffic.requests[r].model].objective_s;
                assert_int_equal(isnan(fast[r]), isnan(slow[r]));
                if (isnan(fast[r])) continue;
                support_serving_near(fast[r], slow[r], 1e-9);
                counted += slow[r] <= objective_s * (1 + SERVING_OBJECTIVE_SLACK);
            }
            assert_int_equal(attained, counted);
            uint32_t bound;
            assert_int_equal(serving_bound(&in, &traffic, &bound, &err), STATUS_OK);
            assert_true(attained <= bound && bound <= traffic.count);
            free(fast);
            free(slow);
        }
        traffic_release(&traffic);
        serving_release(&in);
    }
}

/* --- queueing theory -------------------------------------------------------------------------- */

/* The mean of latencies, and its standard error by the means of batches (neighbours are not independent). */
static double mean_of(const double *latency_s, uint32_t count, double *error_s)
{
    enum { BATCHES = 40 };
    double sum = 0, squares = 0;
    for (uint32_t b = 0; b < BATCHES; b++) {
        double batch = 0;
        uint32_t from = (uint32_t)((uint64_t)count * b / BATCHES), to = (uint32_t)((uint64_t)count * (b + 1) / BATCHES);
        for (uint32_t i = from; i < to; i++) batch += latency_s[i];
        batch /= to - from;
        sum += batch;
        squares += batch * batch;
    }
    *error_s = sqrt((squares / BATCHES - sum / BATCHES * (sum / BATCHES)) / (BATCHES - 1));
    return sum / BATCHES;
}

/* Two models of one second that get `rate` requests together, on two devices: latencies. */
static double two_models(double rate, const char *first, const char *second, double hop_s, double *error_s)
{
    struct serving in;
    struct serving_cuts cuts;
    struct traffic traffic;
    struct error err = {0};
    uint32_t models[2][2] = {{0, 1}, {1, 1}}, placed = first[0] == '1' ? 1 : 2;
    double *latency_s;
    support_serving(&in, "{'spillway_serving': 1, 'devices': 2, 'memory': '4 B', 'horizon': '400000s', 'models': ["
                    "{'name': 'm', 'count': 2, 'latency': '1s', 'layers': 2, 'weights': '2 B', 'hop': '%.3fs',"
                    "'arrivals': {'rate': %.6f}}]}", hop_s, rate);
    support_serving_cuts(&in, &cuts);
    struct serving_group groups[2] = {{{1, placed}, models[0], placed}, {{1, 1}, models[1], 1}};
    struct serving_placement placement = {groups, second ? 2 : 1};
    assert_int_equal(placement_check(&cuts, &placement, &err), STATUS_OK);
    assert_int_equal(traffic_make(&in, below(UINT32_MAX), 1, &traffic, &err), STATUS_OK);
    support_serve(&cuts, &placement, &traffic, true, &latency_s);
    double mean = mean_of(latency_s, traffic.count, error_s);
    free(latency_s);
    traffic_release(&traffic);
    serving_release(&in);
    return mean;
}

/* M/D/1: D + rate D^2 / (2 (1 - rate D)) for each of two models with half of the requests on a device of its own;
 * in one pipeline of both devices the sum of its stages, and the wait for the slower stage. */
static void waits_as_theory_says(void **state)
{
    (void)state;
    static const double rates[] = {0.4, 0.8, 1.2, 1.6};
    for (size_t i = 0; i < ARRAY_COUNT(rates); i++) {
        double rate = rates[i], half = rate / 2, error_s;
        double apart = two_models(rate, "1", "1", 0, &error_s);
        support_serving_near(apart, 1 + half / (2 * (1 - half)), 5 * error_s);
        assert_true(error_s < 0.05 * apart);
        for (int hops = 0; hops < 2; hops++) {
            double hop_s = hops ? 0.1 : 0, slow_s = 0.5 + hop_s;
            if (rate * slow_s >= 0.95) continue;
            double piped = two_models(rate, "2", NULL, hop_s, &error_s);
            support_serving_near(piped, 1 + hop_s + rate * slow_s * slow_s / (2 * (1 - rate * slow_s)), 5 * error_s);
        }
    }
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* The most requests of one model on one device that any order serves in time: all orders of all subsets. */
static uint32_t most_served(const struct traffic *traffic, double objective_s, double work_s, uint32_t used,
                            double now_s)
{
    uint32_t best = 0;
    for (uint32_t r = 0; r < traffic->count; r++) {
        if (used >> r & 1) continue;
        double end_s = fmax(now_s, traffic->requests[r].at_s) + work_s;
        if (end_s - traffic->requests[r].at_s > objective_s) continue;
        uint32_t count = 1 + most_served(traffic, objective_s, work_s, used | 1u << r, end_s);
        if (count > best) best = count;
    }
    return best;
}

static void bounds_hold(void **state)
{
    (void)state;
    uint32_t met = 0, trials = 300;
    for (uint32_t trial = 0; trial < trials; trial++) {
        struct serving in;
        struct traffic traffic;
        struct error err = {0};
        uint32_t bound;
        support_serving(&in, "{'spillway_serving': 1, 'devices': 1, 'memory': '4 B', 'horizon': '3s', 'models': ["
                        "{'name': 'm', 'latency': '1s', 'weights': '2 B', 'objective_scale': %.3f,"
                        "'arrivals': {'rate': 1.8}}]}", 1 + 2 * unit());
        assert_int_equal(traffic_make(&in, below(UINT32_MAX), 1, &traffic, &err), STATUS_OK);
        if (traffic.count <= 7) {
            uint32_t most = most_served(&traffic, in.models[0].objective_s, 1, 0, 0);
            assert_int_equal(serving_bound(&in, &traffic, &bound, &err), STATUS_OK);
            assert_true(most <= bound);
            met += most == bound;
        } else {
            met++;
        }
        traffic_release(&traffic);
        serving_release(&in);
    }
    assert_true(met > trials / 3); /* a bound of all requests would hold as well */
    /* two kinds, one device, no time to wait: a request of 4 s or four of 1 s at once, done by eight seconds */
    struct serving in;
    struct traffic traffic;
    struct error err = {0};
    uint32_t bound;
    support_serving(&in, "{'spillway_serving': 1, 'devices': 1, 'memory': '4 B', 'horizon': '9s', 'models': ["
                    "{'name': 'long', 'latency': '4s', 'weights': '2 B', 'objective': '8s', 'arrivals': {'times': [0, "
                    "0, 0]}},{'name': 'short', 'latency': '1s', 'weights': '2 B', 'objective': '3s',"
                    "'arrivals': {'times': [0, 0, 0, 0]}}]}");
    assert_int_equal(traffic_make(&in, 0, 1, &traffic, &err), STATUS_OK);
    assert_int_equal(serving_bound(&in, &traffic, &bound, &err), STATUS_OK);
    assert_int_equal(bound, 3 + 1); /* 3 of the short in 3 s, then 5 / 4 of the long */
    traffic_release(&traffic);
    serving_release(&in);
}

/* --- requests --------------------------------------------------------------------------------- */

static void traffic_is_as_stated(void **state)
{
    (void)state;
    struct serving in;
    struct traffic traffic, fewer, again;
    struct error err = {0};
    support_serving(&in, "{'spillway_serving': 1, 'devices': 1, 'memory': '4 B', 'horizon': '20000s', 'models': ["
                    "{'name': 'g', 'latency': '1s', 'weights': '0 B', 'arrivals': {'process': 'gamma', 'rate': 5, "
                    "'cv': 3}},{'name': 'p', 'latency': '1s', 'weights': '0 B', 'arrivals': {'rate': 5}},"
                    "{'name': 'e', 'latency': '1s', 'weights': '0 B', 'arrivals': {'process': 'even', 'rate': 0.3}},"
                    "{'name': 't', 'latency': '1s', 'weights': '0 B', 'arrivals': {'times': [0, 1, 1, 30000]}}]}");
    uint64_t own = below(UINT32_MAX);
    assert_int_equal(traffic_make(&in, own, 1, &traffic, &err), STATUS_OK);
    assert_int_equal(traffic_make(&in, own, 1, &again, &err), STATUS_OK);
    assert_int_equal(traffic.count, again.count);
    for (uint32_t r = 0; r < traffic.count; r++)
        assert_true(traffic.requests[r].at_s == again.requests[r].at_s &&
                    traffic.requests[r].model == again.requests[r].model);
    uint32_t counts[4] = {0};
    double last_s[2] = {-1, -1}, sum[2] = {0}, squares[2] = {0};
    for (uint32_t r = 0; r < traffic.count; r++) {
        const struct traffic_request *q = &traffic.requests[r];
        if (r > 0) assert_true(q->at_s >= traffic.requests[r - 1].at_s);
        counts[q->model]++;
        if (q->model > 1) continue;
        double gap = q->at_s - last_s[q->model];
        if (last_s[q->model] >= 0) {
            sum[q->model] += gap;
            squares[q->model] += gap * gap;
        }
        last_s[q->model] = q->at_s;
    }
    for (int m = 0; m < 2; m++) {
        double n = counts[m] - 1, mean = sum[m] / n, cv = sqrt(squares[m] / n - mean * mean) / mean;
        double wanted = m ? 1 : 3;
        support_serving_near(mean, 0.2, 5 * 0.2 * wanted / sqrt(n));
        support_serving_near(cv, wanted, 0.1 * wanted);
    }
    assert_int_equal(counts[2], 6000);
    assert_int_equal(counts[3], 3);
    /* what comes for one model does not depend on the others */
    in.model_count = 1;
    assert_int_equal(traffic_make(&in, own, 1, &fewer, &err), STATUS_OK);
    assert_int_equal(fewer.count, counts[0]);
    for (uint32_t r = 0, k = 0; r < traffic.count; r++)
        if (traffic.requests[r].model == 0) assert_true(traffic.requests[r].at_s == fewer.requests[k++].at_s);
    traffic_release(&traffic);
    traffic_release(&fewer);
    traffic_release(&again);
    serving_release(&in);
}

/* --- networks --------------------------------------------------------------------------------- */

/* Seconds and bytes of a network on a machine, by the parts that they consist of. */
static void networks_take_what_they_must(void **state)
{
    (void)state;
    struct hardware hardware = {0};
    struct arena arena = {0};
    struct network network;
    struct serving_kind kind = {0};
    struct error err = {0};
    assert_int_equal(hardware_find("4x h100-sxm5-80gb", &hardware, &err), STATUS_OK);
    assert_int_equal(network_find("gpt2-xl", &arena, &network, &err), STATUS_OK);
    struct served_network served = {&network, 512, PRECISION_BF16, 4};
    assert_int_equal(served_network_kind(&arena, &served, &hardware, &kind, &err), STATUS_OK);
    assert_int_equal(kind.layer_count, network.layer_count);
    /* 25 heads: not on 2 or 4 devices */
    assert_int_equal(kind.degree_count, 1);
    const struct serving_degree *whole = serving_degree_of(&kind, 1);
    uint64_t bytes = 0;
    for (uint32_t l = 0; l < kind.layer_count; l++) bytes += whole->layer_bytes[l];
    /* in one stage the tied table of the head is the embedding's; in stages of their own each has a table */
    uint64_t table = network.vocabulary * network.width;
    assert_true(bytes == 2 * network_parameters(&network) || bytes == 2 * (network_parameters(&network) + table));
    /* a request's matrix products at the machine's peak, the head's included, are the least that it takes */
    double flops = 2.0 * 512 * ((double)network_parameters(&network) - 1024.0 * (double)network.width);
    assert_true(serving_least_s(&kind, 4) > flops / hardware.types[0].peak_bf16.value);
    assert_true(serving_least_s(&kind, 4) < 4 * flops / hardware.types[0].peak_bf16.value);
    assert_int_equal(network_find("gpt2", &arena, &network, &err), STATUS_OK);
    assert_int_equal(served_network_kind(&arena, &served, &hardware, &kind, &err), STATUS_OK);
    assert_int_equal(kind.degree_count, 3); /* 12 heads on 1, 2, 4 */
    assert_true(serving_least_work_s(&kind, 4) == serving_least_work_s(&kind, 1)); /* tensor groups only add to it */
    assert_true(kind.degrees[1].hop_s[3] > 2 * 512 * 768 / 600e9);
    served.sequence = 2000;
    assert_int_equal(served_network_kind(&arena, &served, &hardware, &kind, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the sequence has 2000 tokens, and the network 1024 positions");
    arena_release(&arena);
    hardware_release(&hardware);
}

/* --- files ------------------------------------------------------------------------------------ */

#define HEAD "{'spillway_serving': 1, 'devices': 2, 'memory': '4GB', 'horizon': '1s', 'models': ["
#define STATED "'name': 'a', 'latency': '1s', 'weights': '1GB'"
#define RATE "'arrivals': {'rate': 1}"

static const struct {
    const char *text, *message;
} refused[] = {
    {"{'spillway_serving': 1, 'memory': '4GB', 'horizon': '1s', 'models': []}", "test:1:1: missing key 'devices'"},
    {HEAD "]}", "test:1:83: no models (expected at least one)"},
    {HEAD "{" STATED "}]}", "test:1:84: missing key 'arrivals'"},
    {HEAD "{" STATED ", 'arrivals': {'process': 'gamma', 'rate': 1}}]}", "test:1:145: missing key 'cv'"},
    {HEAD "{" STATED ", 'arrivals': {'process': 'gama', 'rate': 1}}]}",
     "test:1:157: unknown process 'gama' (expected poisson, gamma or even)"},
    {HEAD "{" STATED ", 'arrivals': {'times': [1, 0.5]}}]}",
     "test:1:159: 0.5 comes after 1 (expected ascending times)"},
    {HEAD "{" STATED ", 'count': 2, 'arrivals': {'times': [1]}}]}",
     "test:1:157: 'times' are for one model, but 'count' is 2"},
    {HEAD "{" STATED ", 'tensor': {'1': '1s'}, " RATE "}]}", "test:1:149: '1' is not a degree (expected 2 to 4096)"},
    {HEAD "{" STATED ", 'tensor': {'2': '1m'}, " RATE "}]}",
     "test:1:149: '2': '1m' has the unknown unit 'm' (expected a time such as 5us)"},
    {HEAD "{" STATED ", 'objective': '1s', 'objective_scale': 2, " RATE "}]}",
     "test:1:171: there are both 'objective' and 'objective_scale' (expected one)"},
    {HEAD "{'name': 'a', 'network': 'gpt2', " RATE "}]}",
     "test:1:109: the time of a network depends on the machine, and none is named (--hw)"},
    {HEAD "{" STATED ", " RATE "}, {" STATED ", " RATE "}]}",
     "test:1:159: there are two models 'a'"},
    {HEAD "{" STATED ", 'objektive': '1s', " RATE "}]}",
     "test:1:133: unknown key 'objektive' (did you mean 'objective'?)"},
    {HEAD "{" STATED ", 'count': 5000, " RATE "}]}",
     "test:1:142: 'count' is 5000 (expected 1 to 4096)"},
};

static void files_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct serving in = {0};
        struct error err = {0};
        assert_int_equal(support_serving_parse(refused[i].text, &in, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, refused[i].message ? refused[i].message : "");
        serving_release(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cuts_are_best, set_seed),
        cmocka_unit_test_setup(agrees_event_by_event, set_seed),
        cmocka_unit_test_setup(waits_as_theory_says, set_seed),
        cmocka_unit_test_setup(bounds_hold, set_seed),
        cmocka_unit_test_setup(traffic_is_as_stated, set_seed),
        cmocka_unit_test(networks_take_what_they_must),
        cmocka_unit_test_setup(files_are_refused, set_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
