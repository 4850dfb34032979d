/* label: fast
 * Software stacks: which device types get which values, and no GPU without the software that others have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/size.h"
#include "models/cost/cost.h"
#include "models/hardware/software_stack.h"

static void find(const char *name, uint32_t stack, struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    if (hardware_find(name, out, &err) != STATUS_OK) fail_msg("%s", err.text);
    software_stack_apply(out, (enum hardware_stack)stack);
}

/* The A100's own values, which the stack repeats for others. */
static void others_have_the_values_of_the_a100(void **state)
{
    (void)state;
    static const char *const others[] = {"dgx-h100",     "p5en.48xlarge", "p6-b200.48xlarge",
                                         "g6e.48xlarge", "4x rtx-4090-24gb"};
    struct hardware a100, other;
    find("dgx-a100-80gb", STACK_FRAMEWORKS, &a100);
    const struct kernel_model *was = &a100.types[0].kernel_model;
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        find(others[i], STACK_FRAMEWORKS, &other);
        const struct kernel_model *is = &other.types[0].kernel_model;
        assert_true(was->dispatch_latency.value > 0);
        assert_float_equal(is->dispatch_latency.value, was->dispatch_latency.value, 0);
        assert_float_equal(is->kernel_gap.value, was->kernel_gap.value, 0);
        assert_float_equal(is->score_bytes_forward.value, was->score_bytes_forward.value, 0);
        assert_float_equal(is->score_bytes_backward.value, was->score_bytes_backward.value, 0);
        assert_float_equal(is->loss_passes.value, was->loss_passes.value, 0);
        assert_float_equal(is->elementwise_passes.value, was->elementwise_passes.value, 0);
        assert_float_equal(other.types[0].collective_latency.value, a100.types[0].collective_latency.value, 0);
        assert_int_equal(is->dispatch_latency.kind, SOURCE_ASSUMED);
        hardware_release(&other);
    }
    hardware_release(&a100);
}

static void fitted_devices_keep_their_values(void **state)
{
    (void)state;
    static const char *const fitted[] = {"dgx-a100-80gb", "dgx-1v", "dgx-2"};
    for (size_t i = 0; i < ARRAY_COUNT(fitted); i++) {
        struct hardware before, after;
        find(fitted[i], STACK_SPILLWAY, &before);
        find(fitted[i], STACK_FRAMEWORKS, &after);
        assert_memory_equal(&before.types[0].kernel_model, &after.types[0].kernel_model, sizeof(struct kernel_model));
        assert_float_equal(before.types[0].collective_latency.value, after.types[0].collective_latency.value, 0);
        hardware_release(&before);
        hardware_release(&after);
    }
}

/* FLOPs over the share of the peak and no bytes per score, on any device with a kernel model. */
static void attention_is_one_kernel_with_megatron_core(void **state)
{
    (void)state;
    static const char *const machines[] = {"dgx-h100", "dgx-a100-80gb"};
    const struct work_item item = {KERNEL_ATTENTION_HALF_FORWARD, 1, 96, 4096, 128};
    for (size_t i = 0; i < ARRAY_COUNT(machines); i++) {
        struct hardware h;
        find(machines[i], STACK_MEGATRON_CORE, &h);
        const struct device_type *type = &h.types[0];
        const struct kernel_model *model = &type->kernel_model;
        assert_float_equal(model->score_bytes_forward.value, 0, 0);
        double rate = type->peak_bf16.value * model->attention_efficiency.value;
        double expected = work_item_flops(&item) / rate + type->launch_latency.value + model->kernel_gap.value;
        assert_true(rate > 0);
        assert_true(fabs(cost_device_s(&h, 0, &item, 1) / expected - 1) < 1e-9);
        hardware_release(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_have_the_values_of_the_a100),
        cmocka_unit_test(fitted_devices_keep_their_values),
        cmocka_unit_test(attention_is_one_kernel_with_megatron_core),
    };
    return cmocka_run_group_tests_name("software stacks", tests, NULL, NULL);
}
