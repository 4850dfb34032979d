/* models/hardware/prices.h: SkyPilot's header and ours, what counts of several prices, dates, and bad files with
 * their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "models/hardware/prices.h"

static enum status parse(const char *text, struct price_list *out, struct error *err)
{
    *out = (struct price_list){0};
    return price_list_parse("p.csv", text, strlen(text), out, err);
}

/* Columns in another order, quotes, a line that ends as on Windows, no newline at the end. */
static void both_headers_are_read(void **state)
{
    (void)state;
    struct price_list list;
    struct error err = {0};
    assert_int_equal(parse("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,"
                           "Region\n"
                           "p4d.24xlarge,A100,8,96,1152,\"{'Gpus': \"\"8\"\", x}\",21.96,7.5,us-east-1\r\n"
                           "p4d.24xlarge,A100,8,96,1152,,20.16,,eu-north-1\n"
                           "\n"
                           ",A100-80GB,4,,,,9.6,,us-2\n"
                           "g5.xlarge,A10G,1,4,16,,,0.4,us-east-1", &list, &err), STATUS_OK);
    assert_int_equal(list.count, 5);
    const struct price *p = price_find(&list, "aws:p4d.24xlarge", "on_demand");
    assert_float_equal(p->usd_per_h, 20.16, 0); /* the lower of two regions */
    assert_string_equal(p->region, "eu-north-1");
    assert_string_equal(p->as_of, "");
    assert_float_equal(price_find(&list, "p4d.24xlarge", "spot")->usd_per_h, 7.5, 0);
    assert_float_equal(price_find(&list, "A100-80GB", "on_demand")->usd_per_h, 2.4, 1e-12); /* 9.6 / 4 */
    assert_null(price_find(&list, "g5.xlarge", "on_demand"));
    assert_null(price_find(&list, "p4d", "on_demand"));
    price_list_release(&list);
    assert_int_equal(parse("Price,as_of,basis,InstanceType\n3.5,2026-09,reserved_1y,aws:x\n", &list, &err), STATUS_OK);
    assert_float_equal(price_find(&list, "x", "reserved_1y")->usd_per_h, 3.5, 0);
    assert_string_equal(price_find(&list, "x", "reserved_1y")->as_of, "2026-09");
    price_list_release(&list);
}

static void bad_files_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "p.csv:1:1: not the header of a price list (expected the columns InstanceType or AcceleratorName, and "
             "Price)"},
        {"InstanceType,Cost\n", "p.csv:1:1: not the header of a price list (expected the columns InstanceType or "
                                "AcceleratorName, and Price)"},
        {"InstanceType,Price,Price\n", "p.csv:1:20: two columns 'Price'"},
        {"InstanceType,Price\na,1\nb,\n\"c\",-2\n", "p.csv:4:5: Price is '-2' (expected a number above 0)"},
        {"InstanceType,Price\na,nan\n", "p.csv:2:3: Price is 'nan' (expected a number above 0)"},
        {"InstanceType,Price\na,1,2\n", "p.csv:2:1: the row has 3 fields (expected 2, as the header)"},
        {"InstanceType,Price\n,1\n", "p.csv:2:1: the row names no machine (expected an InstanceType or an "
                                     "AcceleratorName)"},
        {"InstanceType,Price,as_of\na,1,2026-13\n", "p.csv:2:5: as_of is '2026-13' (expected a date such as "
                                                    "2026-09-25)"},
        {"InstanceType,Price\n\"a,1\n", "p.csv:2:1: the quote is not closed (expected '\"')"},
        {"InstanceType,Price\n\"a\"b,1\n", "p.csv:2:4: text after a closing quote (expected ',' or the end of the "
                                           "line)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct price_list list;
        struct error err = {0};
        assert_int_equal(parse(rows[i].text, &list, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
        price_list_release(&list);
    }
}

/* 2024 has a 29 February, 1900 had none, 2000 had one. */
static void days_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        int64_t days;
    } rows[] = {{"2026-09-25", "2026-11-22", 58}, {"2024-02-28", "2024-03-01", 2}, {"1900-02-28", "1900-03-01", 1},
                {"2000-02-28", "2000-03-01", 2},  {"2026-11", "2026-10-31", -1},   {"2025-11-22", "2026-11-22", 365}};
    int64_t days;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_true(price_days_between(rows[i].from, rows[i].to, &days));
        assert_int_equal(days, rows[i].days);
    }
    assert_false(price_days_between("2026-1", "2026-11", &days));
    assert_false(price_days_between("2026-11-2x", "2026-11", &days));
    assert_false(price_days_between("1900-02-29", "2026-11", &days));
    assert_false(price_days_between("2026-11-31", "2026-11", &days));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_headers_are_read),
        cmocka_unit_test(bad_files_have_a_place),
        cmocka_unit_test(days_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
