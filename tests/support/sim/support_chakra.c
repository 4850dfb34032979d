#include "tests/support/sim/support_chakra.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chakra/chakra_export.h"
#include "tests/support/sim/support_traces.h"

static char prefix[160];

void test_chakra_begin(void)
{
    support_clean();
    snprintf(prefix, sizeof prefix, "%s", support_path("t"));
}

void test_chakra_end(void)
{
    support_clean();
}

const char *test_chakra_prefix(void) { return prefix; }

void test_chakra_write(uint32_t rank, const struct chakra_node *nodes, uint32_t count)
{
    char path[CHAKRA_PATH_BYTES];
    struct error err = {0};
    struct chakra_writer writer = {0};
    struct file_out *file;
    if (chakra_path(prefix, rank, path, &err) || file_out_create(path, &file, &err) ||
        chakra_write_header(&writer, file, &err))
        fail_msg("%s", err.text);
    for (uint32_t n = 0; n < count; n++) {
        struct chakra_node node = nodes[n];
        if (!node.name) node.name = "node";
        if (chakra_write_node(&writer, file, &node, &err)) fail_msg("%s", err.text);
    }
    if (file_out_commit(file, &err)) fail_msg("%s", err.text);
    chakra_writer_release(&writer);
}

void test_chakra_write_bytes(const char *suffix, const void *bytes, size_t length)
{
    char path[CHAKRA_PATH_BYTES];
    struct error err = {0};
    struct file_out *file;
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    if (file_out_create(path, &file, &err)) fail_msg("%s", err.text);
    file_out_write(file, bytes, length);
    if (file_out_commit(file, &err)) fail_msg("%s", err.text);
}

static enum status simulate(const struct hardware *hardware, double *makespan_s, struct error *err)
{
    struct chakra_trace chakra = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct sim_graph_options options = {.record_spans = true};
    enum status status = chakra_trace_read(prefix, &chakra, err);
    if (status == STATUS_OK) status = sim_chakra_run(&chakra, hardware, &options, &result, &trace, err);
    if (status == STATUS_OK) status = trace_check(&trace, err);
    *makespan_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    chakra_trace_release(&chakra);
    return status;
}

double test_chakra_makespan(const struct hardware *hardware)
{
    double makespan_s;
    struct error err = {0};
    if (simulate(hardware, &makespan_s, &err)) fail_msg("%s", err.text);
    return makespan_s;
}

const char *test_chakra_complaint(const struct hardware *hardware)
{
    static struct error err;
    double makespan_s;
    err = (struct error){0};
    assert_int_equal(simulate(hardware, &makespan_s, &err), STATUS_BAD_INPUT);
    assert_int_equal(strncmp(err.text, prefix, strlen(prefix)), 0);
    return err.text + strlen(prefix);
}

/* Readers that use only data dependencies, and count them, must find the same order: no dependency is missing from
 * the data dependencies or listed twice. */
static void check_dependencies(void)
{
    struct chakra_trace chakra = {0};
    struct error err = {0};
    if (chakra_trace_read(prefix, &chakra, &err)) fail_msg("%s", err.text);
    for (uint32_t r = 0; r < chakra.rank_count; r++)
        for (uint32_t n = 0; n < chakra.ranks[r].count; n++) {
            const struct chakra_node *node = &chakra.ranks[r].nodes[n];
            assert_int_equal(node->ctrl_count, 0);
            for (uint32_t i = 0; i < node->data_count; i++)
                for (uint32_t k = 0; k < i; k++) assert_true(node->data_deps[i] != node->data_deps[k]);
        }
    chakra_trace_release(&chakra);
}

double test_chakra_there_and_back(const struct plan *plan)
{
    struct error err = {0};
    struct sim_chakra_written written;
    test_chakra_begin();
    if (sim_chakra_export(plan, prefix, &written, &err)) fail_msg("%s", err.text);
    assert_int_equal(written.ranks, plan->hardware.device_count);
    assert_true(written.nodes >= plan_operations(plan));
    check_dependencies();
    double makespan_s = test_chakra_makespan(&plan->hardware);
    test_chakra_end();
    return makespan_s;
}
