/*
 * Failures of GPUs, on the emulated machine: memory that is not given, pinning that is refused, and a device that is
 * lost after any number of pieces of work. Whenever that happens, the run ends, reports the failed jobs with the
 * reason, keeps the other jobs if it is told to go on, and leaves whole files: a later run from the checkpoints ends
 * with the bits of an undisturbed run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/checkpoint/resume.h"
#include "exec/run/run.h"
#include "planner/strategy/planner.h"
#include "tests/emulator/emulator_faults.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { JOBS = 2, STEPS = 4 };

/* One that streams whole jobs over both devices, one where each job has a device of its own, and one whose
 * shards live on both, with direct copies between them and without. */
static const struct setting {
    const char *policy;
    uint32_t devices;
    uint64_t memory_bytes;
    bool p2p; /* there are direct links */
} spilled = {"sharded-lrtf", 2, 400000, false}, apart = {"sharded-lrtf-cached", 2, 1 << 24, false},
  crossing = {"model-parallel", 2, 220000, true}, through_host = {"model-parallel", 2, 220000, false};

/* Makes a plan in which first[j] minibatches of job j are done. */
static void make_plan(const struct setting *setting, const uint64_t *first, struct plan *plan)
{
    static const char config[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
                                 "\"n_head\": 2, \"n_positions\": 16, \"vocab_size\": 67}";
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {
        .policy = setting->policy, .activations = PLANNER_AUTO, .seed = 1};
    test_hardware(&hardware, setting->devices, setting->memory_bytes, 1e9);
    hardware.host_bytes.value = 1e9;
    for (uint32_t d = 0; d < setting->devices && setting->p2p; d++) hardware_join(&hardware.devices[d], 1);
    hardware_note_p2p(&hardware);
    test_network_jobs(&jobs, JOBS, config, STEPS);
    for (uint32_t j = 0; j < JOBS && first; j++) {
        jobs.jobs[j].first_minibatch = first[j];
        jobs.jobs[j].minibatches = STEPS - first[j];
    }
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
}

struct outcome {
    uint64_t minibatches[JOBS], weights[JOBS];
    double losses[JOBS][STEPS];
    char failures[JOBS][512];
    uint32_t fetches; /* operations of the plan */
    bool uses_second[JOBS]; /* device 1 */
    uint32_t failed;
};

static char note[512];

static void keep_note(void *context, const char *text)
{
    (void)context;
    snprintf(note, sizeof note, "%s", text);
}

static enum status run_on(const struct setting *setting, const uint64_t *first,
                          const struct run_options *options, struct outcome *out,
                          struct error *err)
{
    struct plan plan;
    struct run_result result = {0};
    struct trace trace = {0};
    struct run_options with_note = *options;
    with_note.on_note = keep_note;
    make_plan(setting, first, &plan);
    *out = (struct outcome){.failed = 0};
    for (uint32_t i = 0; i < plan.task_count; i++)
        if (plan.tasks[i].device == 1)
            out->uses_second[plan.units[plan.tasks[i].unit].job] = true;
    for (uint32_t o = 0; o < plan.op_count; o++) out->fetches += plan.ops[o].stream == STREAM_P2P;
    const enum status status = run_plan(&plan, &with_note, &result, &trace, err);
    out->failed = result.failed;
    for (uint32_t j = 0; j < JOBS && status == STATUS_OK; j++) {
        const struct run_job_result *const job = &result.jobs[j];
        out->minibatches[j] = job->minibatches;
        out->weights[j] = job->weights_fingerprint;
        memcpy(out->losses[j], job->losses, job->minibatches * sizeof(double));
        if (job->failure) snprintf(out->failures[j], sizeof out->failures[j], "%s", job->failure);
    }
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return status;
}

static void run_well(const struct setting *setting, const uint64_t *first,
                     const struct run_options *options, struct outcome *out)
{
    struct error err = {0};
    if (run_on(setting, first, options, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static void assert_same_job(const struct outcome *a, const struct outcome *b, uint32_t job)
{
    assert_int_equal(a->minibatches[job], b->minibatches[job]);
    assert_memory_equal(a->losses[job], b->losses[job], sizeof a->losses[job]);
    assert_true(a->weights[job] == b->weights[job]);
}

/* --- memory ----------------------------------------------------------------------------------------- */

static void test_pinning_is_refused(void **state)
{
    (void)state;
    struct outcome pinned, pageable;
    const struct run_options options = {.poison = true, .delay_seed = 3};
    emulator_set_faults((struct emulator_faults){.device = 0});
    note[0] = '\0';
    run_well(&spilled, NULL, &options, &pinned);
    assert_string_equal(note, "");
    emulator_set_faults((struct emulator_faults){.refuses_pinning = true});
    run_well(&spilled, NULL, &options, &pageable);
    for (uint32_t j = 0; j < JOBS; j++) assert_same_job(&pinned, &pageable, j);
    assert_non_null(strstr(note, "of host memory could not be pinned (operation not supported)"));
    assert_non_null(strstr(note, "of copies"));
}

static void test_memory_is_in_pieces(void **state)
{
    (void)state;
    struct outcome out;
    struct error err = {0};
    const struct run_options options = {.poison = true};
    /* the plan's arenas are larger than 100 000 bytes */
    emulator_set_faults((struct emulator_faults){.largest_bytes = 100000});
    assert_int_equal(run_on(&apart, NULL, &options, &out, &err), STATUS_NO_MEMORY);
    assert_non_null(strstr(err.text, "device 0: an emulated GPU has 3 GiB of 4 GiB left, but does "
                                     "not give 8.24 MiB in one piece"));
    assert_non_null(strstr(err.text, "out of memory"));
}

/* --- a device is lost -------------------------------------------------------------------------------- */

static const char lost_text[] = "device 1 was lost: ";

/* Jobs of the other device end undisturbed. */
static void test_others_go_on(void **state)
{
    (void)state;
    static const uint64_t after[] = {200, 400, 800};
    struct outcome untouched, out;
    const struct run_options options = {.poison = true, .delay_seed = 5, .keep_going = true};
    emulator_set_faults((struct emulator_faults){.device = 0});
    run_well(&apart, NULL, &options, &untouched);
    assert_true(untouched.uses_second[0] != untouched.uses_second[1]);
    const uint32_t hit = untouched.uses_second[1] ? 1 : 0;
    for (size_t i = 0; i < ARRAY_COUNT(after); i++) {
        emulator_set_faults(
            (struct emulator_faults){.loses = true, .device = 1, .after = after[i]});
        run_well(&apart, NULL, &options, &out);
        assert_same_job(&untouched, &out, 1 - hit);
        assert_int_equal(out.failed, 1);
        assert_ptr_equal(strstr(out.failures[hit], lost_text), out.failures[hit]);
        assert_non_null(strstr(out.failures[hit], "an illegal memory access was encountered"));
        assert_true(out.minibatches[hit] < STEPS);
    }
}

/* Without keep_going the run fails, for that reason. */
static void test_the_run_fails(void **state)
{
    (void)state;
    struct outcome out;
    struct error err = {0};
    emulator_set_faults((struct emulator_faults){.loses = true, .device = 1, .after = 300});
    assert_int_equal(run_on(&apart, NULL, &(struct run_options){.poison = true}, &out, &err),
                     STATUS_DEVICE);
    assert_ptr_equal(strstr(err.text, lost_text), err.text);
}

/* A device is lost at any time: checkpoints are whole, and the rest of the training ends with the bits of an
 * undisturbed run. */
static void test_going_on_after_a_loss(void **state)
{
    (void)state;
    enum { ROUNDS = 4, WORK_MIN = 100, WORK_MAX = 1200 }; /* opening takes 60 */
    const uint64_t seed = support_seed(__func__);
    struct outcome untouched, out;
    uint32_t losses = 0, checkpoints_used = 0;
    char folder[] = "/tmp/test-faults-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = 9, .each = true};
    const struct run_options options = {
        .poison = true, .delay_seed = 9, .keep_going = true, .checkpoints = &checkpoints};
    emulator_set_faults((struct emulator_faults){.device = 0});
    run_well(&spilled, NULL, &(struct run_options){.poison = true}, &untouched);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
        assert_int_equal(system(command), 0);
        emulator_set_faults((struct emulator_faults){
            .loses = true,
            .device = (int)(round % 2),
            .after = WORK_MIN + random_below(seed, round, WORK_MAX - WORK_MIN)});
        run_well(&spilled, NULL, &options, &out);
        losses += out.failed > 0;
        emulator_set_faults((struct emulator_faults){.device = 0});

        struct plan plan;
        struct error err = {0};
        struct resume_job found[JOBS] = {0};
        uint64_t first[JOBS];
        bool any = false;
        make_plan(&spilled, NULL, &plan);
        if (resume_look(&plan, folder, false, found, &err) != STATUS_OK) fail_msg("%s", err.text);
        plan_release(&plan);
        for (uint32_t j = 0; j < JOBS; j++) {
            first[j] = found[j].found.step;
            any |= first[j] > 0 && first[j] < STEPS;
            if (first[j] == STEPS) first[j] = STEPS - 1; /* its last step once more */
        }
        checkpoints_used += any;
        run_well(&spilled, first, &options, &out);
        for (uint32_t j = 0; j < JOBS; j++) {
            assert_string_equal(out.failures[j], "");
            assert_same_job(&untouched, &out, j);
        }
    }
    print_message("%u of %u runs lost a device, %u went on from a checkpoint\n", losses, ROUNDS,
                  checkpoints_used);
    assert_true(losses >= 2 && checkpoints_used >= 1);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* --- copies between devices ------------------------------------------------------------------------- */

/* The same bits whether shards are copied to each other directly, by the driver through the host, or,
 * where a direct copy arrives changed, through a buffer of ours; and that is told. */
static void test_direct_copies(void **state)
{
    (void)state;
    static const uint64_t damages[] = {1, 77, 30011};
    struct outcome through, out;
    const struct run_options options = {.poison = true, .delay_seed = 4};
    emulator_set_faults((struct emulator_faults){.device = 0});
    run_well(&through_host, NULL, &options, &through);
    assert_int_equal(through.fetches, 0);
    assert_int_equal(emulator_peer_copies().direct + emulator_peer_copies().through_driver, 0);

    note[0] = '\0';
    emulator_set_faults((struct emulator_faults){.device = 0});
    run_well(&crossing, NULL, &options, &out);
    assert_true(out.fetches > 0);
    for (uint32_t j = 0; j < JOBS; j++) assert_same_job(&through, &out, j);
    assert_true(emulator_peer_copies().direct >= STEPS * JOBS * 2);
    assert_int_equal(emulator_peer_copies().through_driver, 0);

    emulator_set_faults((struct emulator_faults){.forbids_peers = true});
    run_well(&crossing, NULL, &options, &out);
    for (uint32_t j = 0; j < JOBS; j++) assert_same_job(&through, &out, j);
    assert_int_equal(emulator_peer_copies().direct, 0);
    assert_true(emulator_peer_copies().through_driver >= STEPS * JOBS * 2);
    assert_string_equal(note, "");

    for (size_t i = 0; i < ARRAY_COUNT(damages); i++) {
        char expected[96];
        emulator_set_faults((struct emulator_faults){.damages_peers = damages[i]});
        note[0] = '\0';
        run_well(&crossing, NULL, &options, &out);
        for (uint32_t j = 0; j < JOBS; j++) assert_same_job(&through, &out, j);
        assert_int_equal(emulator_peer_copies().direct, 2); /* tried once each way */
        assert_int_equal(emulator_peer_copies().through_driver, 0);
        snprintf(expected, sizeof expected, " do not work (byte %u of ", (unsigned)damages[i] - 1);
        if (!strstr(note, expected)) fail_msg("'%s' does not say '%s'", note, expected);
        assert_ptr_equal(strstr(note, "direct copies from device "), note);
        assert_non_null(strstr(note, "they go through host memory"));
    }
}

/* The device of a peer is lost: the run ends and names it. */
static void test_a_peer_is_lost(void **state)
{
    (void)state;
    static const uint64_t after[] = {60, 150, 300, 500};
    for (size_t i = 0; i < ARRAY_COUNT(after); i++)
        for (int device = 0; device < 2; device++) {
            struct outcome out;
            struct error err = {0};
            emulator_set_faults(
                (struct emulator_faults){.loses = true, .device = device, .after = after[i]});
            assert_int_equal(
                run_on(&crossing, NULL, &(struct run_options){.poison = true}, &out, &err),
                STATUS_DEVICE);
            assert_non_null(strstr(err.text, "an illegal memory access was encountered"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pinning_is_refused), cmocka_unit_test(test_memory_is_in_pieces),
        cmocka_unit_test(test_others_go_on),       cmocka_unit_test(test_the_run_fails),
        cmocka_unit_test(test_going_on_after_a_loss),
        cmocka_unit_test(test_direct_copies),
        cmocka_unit_test(test_a_peer_is_lost),
    };
    return cmocka_run_group_tests_name("CUDA, faults", tests, NULL, NULL);
}
