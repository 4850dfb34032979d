/* cli/capacity/cli_what_if_sensitivity.h: names, groups by their members, the order of bars, prices; effects are
 * made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "cli/capacity/cli_what_if_sensitivity.h"
#include "tests/support/support_seed.h"

static struct what_if_wanted wanted(const char *list)
{
    struct what_if_wanted out;
    struct error err = {0};
    if (what_if_wanted_read(list, &out, &err) != STATUS_OK) fail_msg("%s", err.text);
    return out;
}

static void effect(struct what_if_answer *a, enum machine_value figure, double spread, double better, double worse)
{
    a->effects[figure] = (struct what_if_effect){.spread = spread, .kind = SOURCE_FITTED, .better_s = a->run_s * better,
                                                 .worse_s = a->run_s * worse};
}

static const struct what_if_bar *find(const struct what_if_bar *bars, uint32_t count, const char *name)
{
    for (uint32_t b = 0; b < count; b++)
        if (strcmp(bars[b].name, name) == 0) return &bars[b];
    fail_msg("no bar '%s'", name);
    return NULL;
}

/* Two bandwidths gain 3 % and 4 % in logarithms: together 5 %; the link's latency is not in the group. */
static void groups_add_up(void **state)
{
    (void)state;
    struct what_if_answer a = {.fits = true, .run_s = 70};
    struct what_if_bar bars[WHAT_IF_BARS_MAX];
    effect(&a, MACHINE_LINK, 0.1, exp(-0.03), exp(0.06));
    effect(&a, MACHINE_MEMORY_BANDWIDTH, 0.2, exp(-0.04), exp(0.08));
    effect(&a, MACHINE_LINK_LATENCY, 0.5, exp(-0.3), exp(0.3));
    effect(&a, MACHINE_KERNELS, 0.02, exp(-0.02), exp(0.025));
    struct what_if_wanted want = wanted("bw,mfu");
    uint32_t count = what_if_bars(&want, &a, bars);
    assert_int_equal(count, 2);
    const struct what_if_bar *bw = find(bars, count, "bw"), *mfu = find(bars, count, "mfu");
    assert_true(fabs(bw->better - (exp(-0.05) - 1)) < 1e-12 && fabs(bw->worse - (exp(0.1) - 1)) < 1e-12);
    assert_true(fabs(bw->spread - 0.2) < 1e-12);
    assert_true(fabs(mfu->better - (exp(-0.02) - 1)) < 1e-12 && fabs(mfu->worse - (exp(0.025) - 1)) < 1e-12);
    assert_string_equal(mfu->kind, "fitted");
}

/* All: what matters, the widest first, and the price where there is one; by name whatever has a spread. */
static void all_is_what_matters(void **state)
{
    (void)state;
    uint64_t seed = support_seed("bars");
    struct what_if_answer a = {.fits = true, .run_s = 3.5, .price = {.usd_per_h = 2.5}};
    struct what_if_bar bars[WHAT_IF_BARS_MAX];
    struct what_if_wanted want = wanted("all");
    uint32_t matter = 1; /* the price */
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
        double size = random_below(seed, f, 3) ? 0.002 + 0.001 * (double)random_below(seed, 100 + f, 200) : 0.0004;
        effect(&a, f, 0.05, 1 - size, 1 + size / 2);
        matter += size > 0.001;
    }
    uint32_t count = what_if_bars(&want, &a, bars);
    assert_int_equal(count, matter);
    for (uint32_t b = 1; b < count; b++)
        assert_true(bars[b - 1].worse - bars[b - 1].better >= bars[b].worse - bars[b].better);
    assert_true(find(bars, count, "price")->cost_only);
    effect(&a, MACHINE_RING, 0.05, 0.9999, 1.0001);
    want = wanted("ring,price");
    assert_int_equal(what_if_bars(&want, &a, bars), 2);
    a.price.usd_per_h = 0;
    a.effects[MACHINE_RING].spread = 0;
    assert_int_equal(what_if_bars(&want, &a, bars), 0);
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *list, *message;
    } cases[] = {
        {"price,linc", "option '--sensitivity': unknown property 'linc' (did you mean 'link'?)"},
        {"", "option '--sensitivity': unknown property '' (expected all, price, bw, mfu, or properties such as link or "
             "matmul_efficiency)"},
        {"bw,", "option '--sensitivity': unknown property '' (expected all, price, bw, mfu, or properties such as "
                "link or matmul_efficiency)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct what_if_wanted out;
        struct error err = {0};
        assert_int_equal(what_if_wanted_read(cases[i].list, &out, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
    struct what_if_wanted all = wanted("all"), few = wanted("bw,link_latency,kernels");
    assert_true(all.all && !all.price);
    assert_true(few.groups[WHAT_IF_BANDWIDTH] && few.values[MACHINE_LINK_LATENCY] && few.values[MACHINE_KERNELS] &&
                !few.values[MACHINE_LINK] && !few.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_add_up),
        cmocka_unit_test(all_is_what_matters),
        cmocka_unit_test(unknown_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
