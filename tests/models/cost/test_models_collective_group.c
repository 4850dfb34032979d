/*
 * models/cost/collective_group.h (label: fast): the levels of groups on made-up clusters by hand, closed forms of
 * whole collectives, groups that share NICs, and on random clusters the counts of messages by another way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/cost/collective_group.h"
#include "models/hardware/collective_rate.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

enum { GROUPS_MAX = 256 };

static void check_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected))) fail_msg("%.17g, expected %.17g", found, expected);
}

/* `count` groups of `members`: device first + i * step + g * next is the i-th of group g. */
static void groups_of(const struct hardware *hardware, uint32_t members, uint32_t count, uint32_t step,
                      uint32_t next, struct collective_group *out)
{
    struct arena arena = {0};
    struct error err = {0};
    struct collective_finder finder;
    uint32_t devices[GROUPS_MAX], lacking[2];
    for (uint32_t g = 0; g < count; g++)
        for (uint32_t i = 0; i < members; i++) devices[g * members + i] = i * step + g * next;
    assert_int_equal(collective_finder_init(&arena, hardware, &finder, &err), STATUS_OK);
    for (uint32_t again = 0; again < 2; again++) /* counts are back at 0 */
        if (!collective_groups_find(&finder, devices, members, count, out, lacking))
            fail_msg("no way from %u to %u", lacking[0], lacking[1]);
    arena_release(&arena);
}

static void check_level(const struct collective_level *level, uint32_t members, double latency_s,
                        double bytes_per_s)
{
    assert_int_equal(level->members, members);
    check_close(level->latency_s, latency_s);
    check_close(level->bytes_per_s, bytes_per_s);
}

/* --- levels ---------------------------------------------------------------------------------- */

/* Two nodes of 8 with a NIC each of 22.5e9 B/s behind PCIe (26e9, 10 us): a ring in a node over NVLink, 275e9
 * and 2 x 5 us. */
static void a_nic_for_each_device(void **state)
{
    (void)state;
    struct hardware h;
    struct collective_group of[8];
    support_machine("2x dgx-a100-80gb", &h);
    groups_of(&h, 8, 2, 1, 8, of); /* tensor groups, a node each */
    check_level(&of[1].inner, 8, 1e-5, 275e9);
    assert_int_equal(of[1].outer.members, 1);
    groups_of(&h, 2, 8, 8, 1, of); /* one of each node */
    assert_int_equal(of[3].inner.members, 1);
    check_level(&of[3].outer, 2, 2e-5, 22.5e9);
    groups_of(&h, 16, 1, 1, 0, of); /* all */
    check_level(&of[0].inner, 8, 1e-5, 275e9);
    check_level(&of[0].outer, 2, 2e-5, 22.5e9);
    check_level(&of[0].alone, 2, 2e-5, 22.5e9);
    groups_of(&h, 4, 2, 4, 1, of); /* two of each node: {0, 4, 8, 12}, {1, 5, 9, 13} */
    check_level(&of[0].inner, 2, 1e-5, 275e9);
    check_level(&of[1].outer, 2, 2e-5, 22.5e9);
    groups_of(&h, 3, 1, 7, 0, of); /* 0, 7 and 14: unequal parts, as if each were a node */
    assert_int_equal(of[0].inner.members, 1);
    check_level(&of[0].outer, 3, 2e-5, 22.5e9);
    hardware_release(&h);
}

/* One NIC of 12.5e9 B/s for 8 devices, each 2 x (10 + 5) us: eight pairs across nodes have an eighth each, four
 * a quarter, a ring through all 16 has it to itself and its rings of equal places an eighth. */
static void groups_share_a_nic(void **state)
{
    (void)state;
    struct hardware h;
    struct collective_group of[8];
    support_machine("2x p3dn.24xlarge", &h);
    groups_of(&h, 2, 8, 8, 1, of);
    for (uint32_t g = 0; g < 8; g++) check_level(&of[g].outer, 2, 3e-5, 12.5e9 / 8);
    groups_of(&h, 2, 4, 8, 2, of);
    for (uint32_t g = 0; g < 4; g++) check_level(&of[g].outer, 2, 3e-5, 12.5e9 / 4);
    groups_of(&h, 16, 1, 1, 0, of);
    check_level(&of[0].inner, 8, 1e-5, 135e9);
    check_level(&of[0].outer, 2, 3e-5, 12.5e9 / 8);
    check_level(&of[0].alone, 2, 3e-5, 12.5e9);
    hardware_release(&h);
    /* four NICs: two devices share one */
    support_machine("2x p4d.24xlarge", &h);
    groups_of(&h, 2, 8, 8, 1, of);
    check_level(&of[0].outer, 2, 3e-5, 12.5e9 / 2);
    groups_of(&h, 2, 4, 8, 2, of);
    check_level(&of[0].outer, 2, 3e-5, 12.5e9);
    hardware_release(&h);
}

/* 40 nodes in two pods, 4:1: a leaf's 20 NICs have 112.5e9 B/s up. A ring over 40 nodes in order leaves each pod
 * once at a time; one whose neighbours are always in the other pod 20 times. */
static void a_leaf_that_is_oversubscribed(void **state)
{
    (void)state;
    struct hardware h;
    struct collective_group of[20];
    support_machine("40x dgx-a100-80gb 4:1", &h);
    groups_of(&h, 40, 1, 8, 0, of);
    check_level(&of[0].outer, 40, 2e-5, 22.5e9);
    groups_of(&h, 2, 20, 160, 8, of); /* node n and n + 20 */
    check_level(&of[7].outer, 2, 2e-5, 112.5e9 / 20);
    groups_of(&h, 2, 4, 160, 8, of); /* four of them fit: the NIC is the limit */
    check_level(&of[3].outer, 2, 2e-5, 22.5e9);
    hardware_release(&h);
}

/* --- whole collectives ------------------------------------------------------------------------ */

/* All-reduce of b bytes over N nodes of L. Hierarchical: 2 (L - 1) / L b inside, 2 (N - 1) / N b / L between; a ring
 * through all: 2 (N L - 1) steps of b / (N L), each as slow as the slower of NVLink and the NIC. */
static void closed_forms(void **state)
{
    (void)state;
    const double b = 1e9, in = 1e-5, out = 3e-5, nvlink = 135e9, nic = 12.5e9;
    struct hardware h;
    struct collective_group of[1];
    support_machine("4x p3dn.24xlarge", &h);
    groups_of(&h, 32, 1, 1, 0, of);
    double inside_s = 2 * 7 * (in + b / 8 / nvlink), between_s = 2 * 3 * (out + b / 8 / 4 / (nic / 8));
    check_close(collective_seconds(COLLECTIVE_ALL_REDUCE, COLLECTIVE_HIERARCHICAL, of, 1000000000),
                inside_s + between_s);
    check_close(collective_seconds(COLLECTIVE_ALL_REDUCE, COLLECTIVE_RING, of, 1000000000),
                2 * 31 * (out + b / 32 / nic));
    check_close(collective_seconds(COLLECTIVE_ALL_REDUCE, COLLECTIVE_TREE, of, 1000000000),
                2 * 5 * out + 2 * b / nic);
    /* halving sends between nodes from all members at once */
    check_close(collective_seconds(COLLECTIVE_ALL_REDUCE, COLLECTIVE_HALVING, of, 1000000000),
                2 * 5 * out + 2 * b * 31 / 32 / (nic / 8));
    /* what there is no such way of goes by the fastest, and so does what nothing is asked of */
    double ring_s = collective_seconds(COLLECTIVE_ALL_GATHER, COLLECTIVE_RING, of, 1000000000);
    double fastest_s = collective_seconds(COLLECTIVE_ALL_GATHER, COLLECTIVE_ALGORITHM_COUNT, of, 1000000000);
    check_close(collective_seconds(COLLECTIVE_ALL_GATHER, COLLECTIVE_TREE, of, 1000000000), fastest_s);
    assert_true(fastest_s <= ring_s);
    hardware_release(&h);
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Groups of a random stride on random nodes: no level gets more than its share of any NIC, counted by nodes, and
 * where NICs are the limit it gets just that. */
static void shares_of_random_groups(void **state)
{
    (void)state;
    uint64_t seed = support_seed("shares of random groups");
    static const struct {
        const char *name;
        uint32_t each, nics;
        double nic;
    } kinds[] = {{"8x p3dn.24xlarge", 8, 1, 12.5e9}, {"8x p4d.24xlarge", 8, 4, 12.5e9},
                 {"8x p3.16xlarge", 8, 1, 3.125e9},  {"8x nc24v3", 4, 1, 1.25e9}};
    for (uint32_t c = 0; c < 200; c++) {
        uint64_t key = random_u64(seed, c);
        uint32_t kind = (uint32_t)random_below(key, 0, ARRAY_COUNT(kinds)), each = kinds[kind].each;
        uint32_t nodes = 2 + (uint32_t)random_below(key, 1, 7), count = 1 + (uint32_t)random_below(key, 2, each);
        struct hardware h;
        struct collective_group of[8];
        uint32_t used[8] = {0}, most = 0; /* per NIC of a node: groups that send over it */
        support_machine(kinds[kind].name, &h);
        groups_of(&h, nodes, count, each, 1, of);
        for (uint32_t g = 0; g < count; g++) {
            uint32_t *nic = &used[g * kinds[kind].nics / each];
            if (++*nic > most) most = *nic;
        }
        for (uint32_t g = 0; g < count; g++) {
            uint32_t own = used[g * kinds[kind].nics / each];
            check_close(of[g].outer.bytes_per_s, fmin(kinds[kind].nic, 12.5e9) / own);
            assert_true(of[g].outer.bytes_per_s * most >= kinds[kind].nic * (1 - 1e-12));
        }
        hardware_release(&h);
    }
}

static void no_way(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    struct arena arena = {0};
    struct collective_finder finder;
    struct collective_group of;
    const uint32_t devices[] = {0, 3, 8};
    uint32_t lacking[2] = {99, 99};
    support_machine("2x dgx-a100-80gb", &h);
    h.devices[3].network_count = 1;
    assert_int_equal(collective_finder_init(&arena, &h, &finder, &err), STATUS_OK);
    assert_false(collective_groups_find(&finder, devices, 3, 1, &of, lacking));
    assert_true(lacking[0] == 3 && lacking[1] == 8);
    h.devices[3].network_count = 0;
    assert_false(collective_groups_find(&finder, devices, 3, 1, &of, lacking));
    assert_true(lacking[0] == 3 && lacking[1] == 8);
    assert_true(collective_groups_find(&finder, devices + 1, 1, 1, &of, lacking)); /* without a group */
    arena_release(&arena);
    hardware_release(&h);
}

/* --- measured collectives ---------------------------------------------------------------------- */

static const struct copy_point of_two[] = {{1 << 10, 2e-6, 0}, {1 << 20, 8e-5, 0}, {4 << 20, 4e-4, 0}};
static const struct copy_point of_four[] = {{1 << 10, 6e-6, 0}, {1 << 20, 2.4e-4, 0}, {4 << 20, 1.6e-3, 0}};
static const struct copy_point not_read[] = {{1 << 10, 1, 0}};
static const struct collective_rate measured[] = {
    {.kind = COLLECTIVE_ALL_REDUCE, .members = 4, .points = of_four, .point_count = ARRAY_COUNT(of_four)},
    {.kind = COLLECTIVE_ALL_REDUCE, .members = 3, .computing = 1, .points = not_read,
     .point_count = ARRAY_COUNT(not_read)},
    {.kind = COLLECTIVE_ALL_REDUCE, .members = 3, .processes = 3, .points = not_read,
     .point_count = ARRAY_COUNT(not_read)},
    {.kind = COLLECTIVE_ALL_REDUCE, .members = 2, .points = of_two, .point_count = ARRAY_COUNT(of_two)},
    {.kind = COLLECTIVE_SEND, .members = 2, .points = of_two, .point_count = ARRAY_COUNT(of_two)},
};

static void use_measured(struct hardware *h)
{
    for (uint32_t t = 0; t < h->type_count; t++) {
        h->types[t].collectives = measured;
        h->types[t].collective_count = ARRAY_COUNT(measured);
    }
}

/* Seconds of a collective among the first `members` devices; its parts add up to them. */
static double seconds_of(const struct hardware *h, uint32_t members, enum collective_kind kind,
                         enum collective_algorithm forced, uint64_t bytes)
{
    struct collective_group group;
    struct collective_part parts[COLLECTIVE_PARTS_MAX];
    double parts_s = 0;
    groups_of(h, members, 1, 1, 0, &group);
    const enum collective_algorithm algorithm = collective_algorithm_of(kind, forced, &group, bytes);
    const uint32_t count = collective_parts(kind, algorithm, &group, bytes, parts);
    for (uint32_t i = 0; i < count; i++) {
        parts_s += parts[i].seconds;
        assert_true(parts[i].transfer_s <= parts[i].seconds);
    }
    const double seconds = collective_seconds(kind, forced, &group, bytes);
    check_close(parts_s, seconds);
    return seconds;
}

/* On points their seconds; between sizes along a line of logarithms; between groups in proportion; above the largest
 * size at its rate; whatever the algorithm. */
static void measured_collectives_count(void **state)
{
    (void)state;
    struct hardware h;
    support_machine("8x a100-sxm4-80gb", &h);
    use_measured(&h);
    for (uint32_t a = 0; a <= COLLECTIVE_ALGORITHM_COUNT; a++) {
        const enum collective_algorithm forced = (enum collective_algorithm)a;
        for (size_t p = 0; p < ARRAY_COUNT(of_two); p++) {
            check_close(seconds_of(&h, 2, COLLECTIVE_ALL_REDUCE, forced, of_two[p].bytes), of_two[p].seconds);
            check_close(seconds_of(&h, 4, COLLECTIVE_ALL_REDUCE, forced, of_four[p].bytes), of_four[p].seconds);
            check_close(seconds_of(&h, 3, COLLECTIVE_ALL_REDUCE, forced, of_two[p].bytes),
                        (of_two[p].seconds + of_four[p].seconds) / 2);
        }
        check_close(seconds_of(&h, 2, COLLECTIVE_ALL_REDUCE, forced, 2 << 20), sqrt(8e-5 * 4e-4));
        check_close(seconds_of(&h, 2, COLLECTIVE_ALL_REDUCE, forced, 12 << 20), 3 * 4e-4);
        check_close(seconds_of(&h, 2, COLLECTIVE_ALL_REDUCE, forced, 16), 2e-6);
        check_close(seconds_of(&h, 2, COLLECTIVE_SEND, forced, 1 << 20), 8e-5);
    }
    hardware_release(&h);
}

/* The closed form holds for other kinds, for more members than were measured, over paced links, between types, between
 * nodes, and for machines without measured collectives, to the last bit. */
static void else_the_closed_form(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint32_t members;
        bool paced;
        enum collective_kind kind;
        bool differs;
    } cases[] = {
        {"8x a100-sxm4-80gb", 4, false, COLLECTIVE_ALL_REDUCE, true},
        {"8x a100-sxm4-80gb", 4, true, COLLECTIVE_ALL_REDUCE, false},
        {"8x a100-sxm4-80gb", 5, false, COLLECTIVE_ALL_REDUCE, false},
        {"8x a100-sxm4-80gb", 4, false, COLLECTIVE_ALL_GATHER, false},
        {"2x dgx-a100-80gb", 8, false, COLLECTIVE_ALL_REDUCE, false},
        {"2x dgx-a100-80gb", 16, false, COLLECTIVE_SEND, false},
        {"a100-sxm4-80gb + 3x v100-sxm2-32gb", 4, false, COLLECTIVE_ALL_REDUCE, false},
    };
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct hardware h;
        support_machine(cases[c].machine, &h);
        for (uint32_t l = 0; l < h.link_count; l++) h.links[l].paced = cases[c].paced;
        const double closed_s = seconds_of(&h, cases[c].members, cases[c].kind, COLLECTIVE_RING, 3 << 20);
        use_measured(&h);
        const double seconds = seconds_of(&h, cases[c].members, cases[c].kind, COLLECTIVE_RING, 3 << 20);
        assert_int_equal(seconds < closed_s || seconds > closed_s, cases[c].differs);
        hardware_release(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nic_for_each_device), cmocka_unit_test(groups_share_a_nic),
        cmocka_unit_test(a_leaf_that_is_oversubscribed), cmocka_unit_test(closed_forms),
        cmocka_unit_test(shares_of_random_groups), cmocka_unit_test(no_way),
        cmocka_unit_test(measured_collectives_count), cmocka_unit_test(else_the_closed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
