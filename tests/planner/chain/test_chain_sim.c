/*
 * The promise of a chain's schedule against the simulator: the schedule is written down as a plan for one device on a
 * duplex link, each operation ordered after all operations that ended before it, and simulated. Both take the same time
 * (a copy of a broken number of ticks takes less in the simulator than the rounded copy here), and the peak of memory
 * is no more than the device has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "planner/chain/chain_certify.h"
#include "tests/support/solve/support_chain.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

enum { TICK_NS = 1000, EVENTS_OF_LAYER = 4 };

struct event {
    int64_t start, end;
    uint32_t layer;
    uint8_t stream; /* enum plan_stream_kind */
    bool back;      /* a backward pass */
};

static int by_start(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return (a->stream > b->stream) - (a->stream < b->stream);
}

static uint32_t list_events(const struct chain *chain, const struct chain_schedule *s, struct event *events)
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        int64_t again = s->choices[l] == CHAIN_RECOMPUTE ? layer->again : 0;
        events[count++] = (struct event){s->forward[l], s->forward[l] + layer->forward, l, STREAM_COMPUTE, false};
        events[count++] = (struct event){s->backward[l], s->backward[l] + again + layer->backward, l,
                                         STREAM_COMPUTE, true};
        if (s->choices[l] != CHAIN_SWAP) continue;
        events[count++] = (struct event){s->out[l], s->out[l] + layer->out, l, STREAM_D2H, false};
        events[count++] = (struct event){s->in[l], s->in[l] + layer->in, l, STREAM_H2D, true};
    }
    qsort(events, count, sizeof *events, by_start);
    return count;
}

/* --- as a plan -------------------------------------------------------------------------------- */

/* Adds orderings: each operation waits for the last operation of each stream that had ended at its start. */
static uint32_t orderings(const struct event *events, uint32_t at, struct plan_after *afters)
{
    uint32_t count = 0;
    bool seen[STREAM_KIND_COUNT] = {false};
    for (uint32_t k = at; k-- > 0;) {
        if (seen[events[k].stream] || events[k].end > events[at].start) continue;
        seen[events[k].stream] = true;
        afters[count++] = (struct plan_after){.tasks = at - k, .op = 0};
    }
    return count;
}

struct tensors { /* of a layer: buffers */
    uint32_t whole, boundary, rest, host;
};

static struct tensors tensors_of(struct plan_builder *builder, const struct chain_layer *layer, uint32_t l)
{
    struct plan_buffer buffer = {.kind = BUFFER_ACTIVATIONS, .shard = l, .on_device = true, .bytes = layer->saved};
    struct tensors t = {.whole = plan_builder_buffer(builder, &buffer)};
    buffer.variant = 1;
    buffer.bytes = layer->boundary;
    t.boundary = plan_builder_buffer(builder, &buffer);
    buffer.variant = 2;
    buffer.bytes = layer->saved - layer->boundary;
    t.rest = plan_builder_buffer(builder, &buffer);
    buffer = (struct plan_buffer){.kind = BUFFER_ACTIVATIONS, .shard = l, .bytes = layer->saved};
    t.host = plan_builder_buffer(builder, &buffer);
    return t;
}

/* Lists the accesses of an operation to its layer's buffers. */
static uint32_t accesses_of(const struct event *event, enum chain_choice choice, const struct tensors *t,
                            struct plan_access *accesses)
{
    const uint32_t take = ACCESS_WRITE | ACCESS_ACQUIRE;
    if (event->stream == STREAM_D2H) {
        accesses[0] = (struct plan_access){.buffer = t->whole, .flags = ACCESS_READ | ACCESS_RELEASE};
        accesses[1] = (struct plan_access){.buffer = t->host, .flags = ACCESS_WRITE};
        return 2;
    }
    if (event->stream == STREAM_H2D) {
        accesses[0] = (struct plan_access){.buffer = t->host, .flags = ACCESS_READ};
        accesses[1] = (struct plan_access){.buffer = t->whole, .flags = take};
        return 2;
    }
    if (choice != CHAIN_RECOMPUTE) {
        accesses[0] = (struct plan_access){.buffer = t->whole,
                                           .flags = event->back ? ACCESS_READ | ACCESS_RELEASE : take};
        return 1;
    }
    accesses[0] = (struct plan_access){.buffer = t->boundary,
                                       .flags = event->back ? ACCESS_READ | ACCESS_RELEASE : take};
    accesses[1] = (struct plan_access){.buffer = t->rest, .flags = take | ACCESS_RELEASE};
    return 2;
}

static void add_operation(struct plan_builder *builder, const struct chain *chain, const struct chain_schedule *s,
                          const struct event *events, uint32_t at)
{
    const struct event *event = &events[at];
    const struct chain_layer *layer = &chain->layers[event->layer];
    struct tensors t = tensors_of(builder, layer, event->layer);
    struct plan_access accesses[2];
    struct plan_after afters[STREAM_KIND_COUNT];
    uint32_t slots[2], slot_count = 0, after_count = orderings(events, at, afters);
    uint32_t count = accesses_of(event, (enum chain_choice)s->choices[event->layer], &t, accesses);
    struct plan_op op = {.kind = OP_COMPUTE, .stream = event->stream,
                         .pass = event->back ? PLAN_BACKWARD : PLAN_FORWARD, .work = PLAN_NONE};
    if (event->stream != STREAM_COMPUTE) {
        op.kind = OP_COPY;
        op.pass = 0;
        op.bytes = layer->saved;
    } else {
        op.work = sim_test_work(builder, (uint64_t)(event->end - event->start) * TICK_NS);
    }
    plan_builder_unit_begin(builder, 0, 0, event->back ? PLAN_BACKWARD : PLAN_FORWARD, false);
    plan_builder_op(builder, &op, accesses, count, afters, after_count);
    uint32_t unit = plan_builder_unit_end(builder);
    for (uint32_t a = 0; a < count; a++) /* ranges of their own: only bytes are counted */
        if (accesses[a].flags & ACCESS_ACQUIRE)
            slots[slot_count++] = plan_builder_slot(
                builder, (2 * event->layer + a) * UINT64_C(1000000000), 1000000000);
    plan_builder_task(builder, unit, 0, slots, slot_count);
}

static void make_plan(const struct chain *chain, const struct chain_schedule *s, struct plan *out)
{
    struct hardware hardware;
    struct event *events = calloc(chain->layer_count, EVENTS_OF_LAYER * sizeof *events);
    assert_non_null(events);
    assert_int_equal(chain->out_bytes_per_tick, chain->in_bytes_per_tick);
    sim_test_machine(&hardware, "cuda", 1);
    sim_test_connect(&hardware, 0,
                     sim_test_link(&hardware, (double)chain->out_bytes_per_tick * 1e9 / TICK_NS, 0, true));
    struct plan_builder *builder = sim_test_builder(&hardware, 1);
    uint32_t count = list_events(chain, s, events);
    for (uint32_t e = 0; e < count; e++) add_operation(builder, chain, s, events, e);
    sim_test_finish(builder, out);
    free(events);
}

/* --- promises --------------------------------------------------------------------------------- */

static void kept_promises(void **state)
{
    (void)state;
    static const double shapes[][2] = {{0.3, 0.3}, {0.1, 0.3}, {0.3, 0.1}, {0.4, 0.6}};
    static const uint32_t layers[] = {12, 24, 48, 96};
    uint64_t seed = support_seed("promises");
    double worst = 0;
    for (uint32_t i = 0; i < CHAIN_FAMILIES * ARRAY_COUNT(layers) * ARRAY_COUNT(shapes); i++) {
        const double *shape = shapes[i % ARRAY_COUNT(shapes)];
        struct test_chain_random options = {.family = (enum chain_family)(i / 16), .seed = seed + i,
                                       .layers = layers[i / 4 % 4], .memory = shape[0], .link = shape[1]};
        struct chain chain;
        struct chain_schedule schedule = {0};
        struct chain_certificate certificate;
        struct sim_test_outcome outcome;
        struct plan plan = {0};
        struct error err = {0};
        const struct chain_certify_options limits = {.limit_s = 0.2, .width_max = 64};
        assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
        if (chain_certify(&chain, &limits, &schedule, &certificate, &err)) fail_msg("%s", err.text);
        make_plan(&chain, &schedule, &plan);
        sim_test_simulate(&plan, &outcome);
        double promised = (double)schedule.makespan * TICK_NS * 1e-9, found = outcome.result.makespan_s;
        uint64_t peak = 0;
        for (uint32_t p = 0; p < outcome.trace.place_count; p++)
            if (strcmp(outcome.trace.places[p].name, "gpu0") == 0) peak = outcome.trace.places[p].peak_bytes;
        double off = (promised - found) / promised;
        if (off > worst) worst = off;
        if (off < -1e-9 || off > 0.01 || peak > chain.memory || peak == 0) {
            test_chain_print(&chain);
            fail_msg("seed %" PRIu64 ", case %u: promised %g s and %" PRIu64 " bytes, simulated %g s and %" PRIu64,
                     seed, i, promised, chain.memory, found, peak);
        }
        sim_test_release(&outcome);
        plan_release(&plan);
        chain_schedule_release(&schedule);
        chain_release(&chain);
    }
    printf("simulated at most %.4f %% below what was promised\n", 100 * worst);
}

/* Links carry whole numbers of bytes per tick: nothing is rounded, and times are equal. */
static void to_the_tick(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t makespan;
    } cases[] = {
        /* tests/planner/chain/test_chain.c works the first one out on paper */
        {"{'spillway_chain': 1, 'memory': 22, 'out_bytes_per_tick': 2, 'in_bytes_per_tick': 2, 'layers': "
         "[{'forward': 3, 'backward': 7, 'saved': 10, 'boundary': 1}, "
         "{'forward': 4, 'backward': 6, 'saved': 10, 'boundary': 1}, "
         "{'forward': 5, 'backward': 8, 'saved': 10, 'boundary': 1}]}", 34},
        {"{'spillway_chain': 1, 'memory': 25, 'out_bytes_per_tick': 1, 'in_bytes_per_tick': 1, 'layers': "
         "[{'forward': 9, 'backward': 2, 'saved': 10, 'boundary': 2, 'count': 3}]}", 0},
    };
    for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct chain chain;
        struct chain_schedule schedule = {0};
        struct chain_certificate certificate;
        struct sim_test_outcome outcome;
        struct plan plan = {0};
        struct error err = {0};
        test_chain(cases[i].text, &chain);
        if (chain_certify(&chain, &(struct chain_certify_options){.limit_s = 60}, &schedule, &certificate, &err))
            fail_msg("%s", err.text);
        if (cases[i].makespan) assert_int_equal(schedule.makespan, cases[i].makespan);
        assert_int_equal(schedule.makespan, test_chain_brute_force(&chain, NULL));
        make_plan(&chain, &schedule, &plan);
        sim_test_simulate(&plan, &outcome);
        SIM_ASSERT_CLOSE(outcome.result.makespan_s, (double)schedule.makespan * TICK_NS * 1e-9);
        sim_test_release(&outcome);
        plan_release(&plan);
        chain_schedule_release(&schedule);
        chain_release(&chain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_promises), cmocka_unit_test(to_the_tick)};
    return cmocka_run_group_tests_name("chain_sim", tests, NULL, NULL);
}
