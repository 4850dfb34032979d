/*
 * Direct copies in plans: which of the copies between two devices go straight, when they do not, and the saved bytes
 * and time.
 *
 * That training gives the same bits with them is test_contract.c's matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "planner/check/plan_check.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

enum { BLOCKS = 6, WIDTH = 64, VOCABULARY = 257, MINIBATCHES = 4 };

/* How devices reach each other. */
enum links { LINKS_NONE, LINKS_OWN, LINKS_PCIE, LINKS_SLOW };

struct wish {
    const char *policy;
    uint32_t devices, jobs;
    enum links links;
    uint64_t memory;
};

struct made {
    struct plan plan;
    double seconds;
    uint64_t bytes[STREAM_KIND_COUNT]; /* of copies, by stream */
    uint64_t boundaries, inputs, gradients; /* of the P2P ones, how many; inputs: boundaries for a loss */
};

/* Links of 100 MB/s to the host. Own links have the same rate, and slow ones a third. */
static void connect(struct hardware *hardware, enum links links)
{
    struct hardware_options options = {.p2p_bytes_per_s = links == LINKS_SLOW ? 1e8 / 3 : 1e8};
    struct error err = {0};
    if (links == LINKS_NONE) return;
    if (links == LINKS_PCIE) {
        for (uint32_t d = 0; d < hardware->device_count; d++) {
            struct hardware_device *device = &hardware->devices[d];
            struct hardware_network *network = hardware_join(device, 1);
            memcpy(network->path, device->path, sizeof device->path);
            network->path_count = device->path_count;
        }
        hardware_note_p2p(hardware);
        return;
    }
    if (hardware_adjust(hardware, &options, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static void count_copies(struct made *made)
{
    const struct plan *plan = &made->plan;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *unit =
                &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
                const struct plan_op *op = &plan->ops[o];
                if (op->kind != OP_COPY) continue;
                made->bytes[op->stream] += op->bytes * plan->segments[s].repeat_count;
                if (op->stream != STREAM_P2P) continue;
                bool boundary = plan->buffers[plan->accesses[op->first_access].buffer].kind ==
                                BUFFER_BOUNDARY;
                *(boundary ? &made->boundaries : &made->gradients) +=
                    plan->segments[s].repeat_count;
                if (unit->pass == PLAN_LOSS) made->inputs += plan->segments[s].repeat_count;
            }
        }
}

static bool make(const struct wish *wish, struct made *out)
{
    struct hardware hardware;
    struct job_set set;
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {.policy = wish->policy,
                                            .activations = ACTIVATIONS_RECOMPUTE,
                                            .optimizer = PLANNER_PLACE_DEVICE,
                                            .shards = BLOCKS + 2};
    *out = (struct made){0};
    test_hardware(&hardware, wish->devices, wish->memory, 1e8);
    connect(&hardware, wish->links);
    test_gpt_jobs(&set, wish->jobs, BLOCKS, WIDTH, VOCABULARY, MINIBATCHES);
    enum status status = planner_plan(&hardware, &set, &options, &out->plan, &err);
    if (status == STATUS_INFEASIBLE) return false;
    if (status == STATUS_OK) status = plan_check(&out->plan, &err);
    if (status == STATUS_OK)
        status = sim_run(&out->plan, &(struct sim_options){0}, &result, &trace, &err);
    if (status != STATUS_OK) fail_msg("%s", err.text);
    assert_true(out->plan.lower_bound_s <= result.makespan_s * (1 + 1e-9));
    out->seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    count_copies(out);
    return true;
}

static void make_or_fail(const struct wish *wish, struct made *out)
{
    if (!make(wish, out)) fail_msg("%s does not fit", wish->policy);
}

/*
 * A single job in residence on two devices: shards 0 .. k - 1 here and the rest there, so in each minibatch one
 * boundary crosses forwards and one gradient back. Each gradient that goes straight spares a copy out and one in; each
 * boundary one in, unless it is the loss's input, for a backward pass reads it on the host. Nothing else changes.
 */
static void test_one_job_over_two_devices(void **state)
{
    (void)state;
    struct made direct, through;
    struct wish wish = {"model-parallel", 2, 1, LINKS_NONE, 3 << 20};
    make_or_fail(&wish, &through);
    wish.links = LINKS_OWN;
    make_or_fail(&wish, &direct);
    const struct job *job = &direct.plan.jobs.jobs[0];
    const uint64_t boundary = job->microbatch * job->sequence * job->network.width * 4;
    assert_int_equal(direct.boundaries, MINIBATCHES);
    assert_int_equal(direct.gradients, MINIBATCHES);
    assert_int_equal(direct.bytes[STREAM_P2P], 2 * MINIBATCHES * boundary);
    assert_int_equal(through.bytes[STREAM_H2D] - direct.bytes[STREAM_H2D],
                     2 * MINIBATCHES * boundary);
    uint64_t spared_out = through.bytes[STREAM_D2H] - direct.bytes[STREAM_D2H];
    assert_true(spared_out == MINIBATCHES * boundary || spared_out == 2 * MINIBATCHES * boundary);
    assert_true(direct.seconds < through.seconds);
    /* a chain: shorter by the saving of each crossing, except for copies that ran at the same time */
    double crossings_s = 2 * MINIBATCHES * (double)boundary / 1e8;
    assert_true(through.seconds - direct.seconds > 0.9 * crossings_s);
    assert_true(through.seconds - direct.seconds < 1.5 * crossings_s);
    plan_release(&direct.plan);
    plan_release(&through.plan);
}

/* Over the links to the host a boundary would go out twice, once for the backward pass: it does not
 * go straight, unless it is the loss's. Gradients do: out and in at once, instead of one after the other. */
static void test_over_the_links_to_the_host(void **state)
{
    (void)state;
    struct made direct, through;
    struct wish wish = {"model-parallel", 2, 1, LINKS_NONE, 3 << 20};
    make_or_fail(&wish, &through);
    wish.links = LINKS_PCIE;
    make_or_fail(&wish, &direct);
    assert_int_equal(direct.gradients, MINIBATCHES);
    assert_int_equal(direct.boundaries, direct.inputs);
    assert_true(direct.seconds < through.seconds);
    plan_release(&direct.plan);
    plan_release(&through.plan);
}

/* A link of a third of the rate is slower than out and in again: it stays unused. */
static void test_a_slow_link_is_left_alone(void **state)
{
    (void)state;
    struct made made;
    const struct wish wish = {"model-parallel", 2, 1, LINKS_SLOW, 3 << 20};
    make_or_fail(&wish, &made);
    assert_true(hardware_has_p2p(&made.plan.hardware));
    assert_int_equal(made.bytes[STREAM_P2P], 0);
    plan_release(&made.plan);
}

/* Every policy, on two to four devices of several sizes, is a plan that the judge accepts, and the
 * planner's other decisions stay: what does not go straight goes as before. */
static void test_all_policies(void **state)
{
    (void)state;
    const uint64_t sizes[] = {900 << 10, 1600 << 10, 3 << 20, 8 << 20};
    uint32_t planned = 0, with_direct = 0, faster = 0;
    for (uint32_t p = 0; policy_name_at(p); p++)
        for (uint32_t n = 0; n < 4 * ARRAY_COUNT(sizes); n++) {
            struct made direct, through;
            struct wish wish = {policy_name_at(p), 2 + n % 3, 1 + n % 4, LINKS_NONE, sizes[n / 4]};
            if (!make(&wish, &through)) continue;
            wish.links = n % 2 ? LINKS_OWN : LINKS_PCIE;
            make_or_fail(&wish, &direct);
            planned++;
            with_direct += direct.bytes[STREAM_P2P] > 0;
            faster += direct.bytes[STREAM_P2P] > 0 && direct.seconds < through.seconds;
            assert_int_equal(through.bytes[STREAM_P2P], 0);
            assert_int_equal(direct.plan.shard_count, through.plan.shard_count);
            plan_release(&direct.plan);
            plan_release(&through.plan);
        }
    print_message("%u plans, %u with direct copies, %u of them faster\n", planned, with_direct, faster);
    assert_true(planned >= 60);
    assert_true(with_direct >= 25);
    assert_true(faster * 6 >= with_direct * 5); /* orders differ too, so some are not */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_job_over_two_devices),
        cmocka_unit_test(test_over_the_links_to_the_host),
        cmocka_unit_test(test_a_slow_link_is_left_alone),
        cmocka_unit_test(test_all_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
