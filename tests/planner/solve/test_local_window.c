/*
 * Windows of local search: the predicted change of the sum over all ways is the change after dispatching everything
 * again, a change that is carried out leaves that schedule, and a window that goes on equals a new one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "planner/solve/search/local_window.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

enum { REACH = 12 };

/* Steps by job and sequence, and which device goes on with which sequence. */
struct order {
    struct dispatch_step *steps;
    uint32_t *device_of;
};

static void begin(struct local_split *c, const struct order *order)
{
    local_split_clear(c);
    for (uint32_t g = 0; g < c->in->device_count; g++) {
        c->device_of[g] = order->device_of[g];
        c->sequence_of[order->device_of[g]] = g;
    }
    for (uint32_t t = 0; t < c->in->task_count; t++) {
        c->steps[t].job = order->steps[t].job;
        c->steps[t].sequence = order->steps[t].device;
    }
    local_split_set_tails(c, 0, c->in->task_count - 1);
    local_split_count_bytes(c);
}

static void go_on(struct local_split *c, uint32_t step)
{
    uint32_t job = c->steps[step].job, device = c->device_of[c->steps[step].sequence];
    local_split_put(c, job, device);
    c->jobs[job].next = c->steps[step].next_of_job;
    c->devices[device].next = c->steps[step].next_in_sequence;
}

static double ways(struct local_split *c)
{
    double sum = local_split_bridge_way(c, c->bytes);
    for (uint32_t i = 0; i < c->in->job_count; i++) sum += c->jobs[i].way = local_split_job_way(c, i);
    for (uint32_t g = 0; g < c->in->device_count; g++) sum += c->devices[g].way = local_split_device_way(c, g);
    return sum;
}

/* The sum over all ways after step `last` of an order. */
static double ways_behind(struct local_split *c, const struct order *order, uint32_t last)
{
    begin(c, order);
    for (uint32_t t = 0; t <= last; t++) go_on(c, t);
    return ways(c);
}

static bool order_fits(const struct instance *in, const struct order *order)
{
    struct dispatch *d;
    struct error err = {0};
    bool fits = true;
    assert_int_equal(dispatch_create(in, &d, &err), STATUS_OK);
    for (uint32_t t = 0; t < in->task_count && fits; t++) {
        uint32_t device = order->device_of[order->steps[t].device];
        fits = instance_fits(in, d->jobs[order->steps[t].job].unit, in->device_class[device]);
        if (fits) dispatch_put(d, order->steps[t].job, device);
    }
    dispatch_destroy(d);
    return fits;
}

/* Any order in which all tasks fit. */
static void draw_order(const struct instance *in, uint64_t key, struct order *out)
{
    uint32_t n = in->task_count, jobs = in->job_count, devices = in->device_count;
    uint32_t *left = calloc(jobs, sizeof *left);
    *out = (struct order){calloc(n, sizeof *out->steps), calloc(devices, sizeof *out->device_of)};
    assert_true(left && out->steps && out->device_of);
    for (uint32_t i = 0; i < jobs; i++) left[i] = instance_length(&in->jobs[i]);
    for (uint32_t g = 0; g < devices; g++) out->device_of[g] = (g + 1) % devices;
    if (in->class_count > 1)
        for (uint32_t g = 0; g < devices; g++) out->device_of[g] = g;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t job = (uint32_t)random_below(key, 3 * t, jobs), sequence;
        while (left[job] == 0) job = (job + 1) % jobs;
        uint32_t unit = instance_unit_at(&in->jobs[job], instance_length(&in->jobs[job]) - left[job]);
        sequence = (uint32_t)random_below(key, 3 * t + 1, devices);
        while (!instance_fits(in, unit, in->device_class[out->device_of[sequence]]))
            sequence = (sequence + 1) % devices;
        out->steps[t] = (struct dispatch_step){job, sequence};
        left[job]--;
    }
    free(left);
}

/* Steps `at` .. `at` + last of an order, changed; false: the change is none that may be judged. */
static bool change_order(const struct instance *in, struct order *order, uint32_t at, const struct local_change *change)
{
    struct dispatch_step *s = order->steps + at, first = s[0], other = s[change->last];
    if (change->kind == LOCAL_SWAP || change->kind == LOCAL_SOONER) {
        for (uint32_t t = 0; t < change->last; t++)
            if (s[t].job == other.job) return false; /* not its job's next */
    }
    switch (change->kind) {
    case LOCAL_SWAP:
        s[0].job = other.job;
        s[change->last].job = first.job;
        break;
    case LOCAL_SOONER:
        for (uint32_t t = change->last; t > 0; t--) s[t] = s[t - 1];
        s[0] = (struct dispatch_step){other.job, first.device};
        break;
    case LOCAL_LATER:
        for (uint32_t t = 0; t < change->last; t++) s[t] = s[t + 1];
        s[change->last] = (struct dispatch_step){first.job, other.device};
        break;
    case LOCAL_ELSEWHERE:
        for (uint32_t g = 0; g < in->device_count; g++)
            if (order->device_of[g] == change->to) s[0].device = g;
        break;
    }
    return true;
}

static void set_cut(const struct instance *in, struct local_split *c, double sharpness)
{
    struct error err = {0};
    assert_int_equal(local_split_init(in, c, &err), STATUS_OK);
    c->scale = LOCAL_EXPONENT_STEPS / sharpness;
    c->bridge_scale = LOCAL_EXPONENT_STEPS / (3 * sharpness);
    c->makespan = in->horizon / in->device_count;
}

static void release_order(struct order *order)
{
    free(order->steps);
    free(order->device_of);
}

/* Counts what the changes of all cases did. */
struct tally {
    uint32_t judged[4], refused, bytes_changed;
};

/* A change of an order at step `at`, whose window ends before `end`; `changed` is the order after it. */
struct change_case {
    const struct instance *in;
    const struct order *order, *changed;
    uint64_t seed;
    uint32_t number, at, end;
    struct local_change change;
};

/* Brings a window to the step of the change. Returns the bytes at the beginning. */
static uint64_t advance_to(const struct change_case *c, struct local_split *split, struct local_window *window)
{
    begin(split, c->order);
    const uint64_t bytes = split->bytes;
    for (uint32_t t = 0; t < c->at; t++) {
        ways(split);
        if (t % 3 == 0) local_window_set(window, t, t + REACH < c->in->task_count ? t + REACH : c->in->task_count);
        go_on(split, t);
    }
    ways(split);
    local_window_set(window, c->at, c->end);
    return bytes;
}

/* Checks what a change that is taken adds, and the steps after it. `anew`: computes both orders from the beginning. */
static void check_taken(const struct change_case *c, struct local_split *split, struct local_split *anew,
                        struct local_window *window, double delta)
{
    double was = ways_behind(anew, c->order, c->at + c->change.last);
    double is = ways_behind(anew, c->changed, c->at + c->change.last);
    if (!(fabs(is - was - delta) < 1e-5 * (1 + was + is))) {
        test_instance_print(c->in);
        fail_msg("seed %" PRIu64 ", case %u, kind %d: %.6f, but said to be %.6f", c->seed, c->number, c->change.kind,
                 is - was, delta);
    }
    assert_false(local_window_judge(window, &c->change, delta - 1e-3 * (1 + fabs(delta)), &delta));
    local_window_apply(window, &c->change);
    for (uint32_t t = c->at; t < c->end; t++) {
        assert_int_equal(split->steps[t].job, c->changed->steps[t].job);
        assert_int_equal(split->device_of[split->steps[t].sequence],
                         c->changed->device_of[c->changed->steps[t].device]);
    }
    assert_int_equal(split->bytes, anew->bytes);
}

static void check_change(const struct change_case *c, struct tally *tally)
{
    struct local_split split = {0}, anew = {0};
    struct local_window *window;
    struct error err = {0};
    double sharpness = (double)c->in->horizon * (c->number % 7 + 1) / 70, delta = NAN;
    set_cut(c->in, &split, sharpness);
    set_cut(c->in, &anew, sharpness);
    assert_int_equal(local_window_create(&split, &window, &err), STATUS_OK);
    uint64_t bytes_before = advance_to(c, &split, window);
    /* after the last of the steps; tasks that do not fit later are the next change's matter */
    if (local_window_judge(window, &c->change, 1e9, &delta)) {
        check_taken(c, &split, &anew, window, delta);
        tally->bytes_changed += split.bytes != bytes_before;
        tally->judged[c->change.kind]++;
    } else {
        assert_false(order_fits(c->in, c->changed));
        tally->refused++;
    }
    local_window_destroy(window);
    local_split_release(&split);
    local_split_release(&anew);
}

static void changes_add_what_they_say(void **state)
{
    (void)state;
    uint64_t seed = support_seed("changes add what they say");
    struct tally tally = {{0}, 0, 0};
    for (uint32_t c = 0; c < 15000; c++) {
        uint64_t key = random_u64(seed, c);
        struct instance in = {0};
        struct order order, changed;
        test_instance_mixed(seed, c, &in);
        if (in.task_count < 3) { /* nothing to change */
            instance_release(&in);
            continue;
        }
        draw_order(&in, key, &order);
        draw_order(&in, key, &changed);
        uint32_t at = (uint32_t)random_below(key, 1000001, in.task_count - 1);
        uint32_t end = at + REACH < in.task_count ? at + REACH : in.task_count;
        struct local_change change = {.kind = (enum local_change_kind)(c % 4),
                                      .last = 1 + (uint32_t)random_below(key, 1000002, end - at - 1),
                                      .to = (uint32_t)random_below(key, 1000003, in.device_count)};
        if (change.kind == LOCAL_ELSEWHERE) change.last = 0;
        if (change_order(&in, &changed, at, &change))
            check_change(&(struct change_case){&in, &order, &changed, seed, c, at, end, change}, &tally);
        release_order(&order);
        release_order(&changed);
        instance_release(&in);
    }
    for (int kind = 0; kind < 4; kind++) assert_true(tally.judged[kind] > 500);
    assert_true(tally.refused > 20);
    assert_true(tally.bytes_changed > 200);
}

static void no_memory(void **state)
{
    (void)state;
    struct instance in = {0};
    struct local_split split = {0};
    test_instance_mixed(1, 1, &in);
    set_cut(&in, &split, 1);
    for (uint64_t n = 1;; n++) {
        struct error err = {0};
        struct local_window *window = NULL;
        alloc_test_fail_at(n);
        enum status status = local_window_create(&split, &window, &err);
        uint64_t made = alloc_test_fail_at(0);
        if (status == STATUS_OK) local_window_destroy(window);
        else assert_int_equal(status, STATUS_NO_MEMORY);
        if (made < n) break;
        assert_true(n < 30);
    }
    local_split_release(&split);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_add_what_they_say),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
