/* Prices: of the command line, else of the price list, else per GPU. */
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"
#include "base/try.h"
#include "cli/capacity/cli_what_if.h"
#include "models/hardware/hardware_names.h"

enum { MACHINE_BYTES = 512 };

/* Compares names, which may have a cloud's prefix. */
static bool is_price_of(const char *item, const char *equals, const char *name)
{
    const char *machine = price_machine(item);
    size_t length = (size_t)(equals - machine);
    name = price_machine(name);
    return strlen(name) == length && strncmp(machine, name, length) == 0;
}

static enum status find_given(const struct option_list *given, const char *name, bool *found, double *usd,
                              struct error *err)
{
    *found = false;
    for (size_t i = 0; given && i < given->count; i++) {
        const char *item = given->items[i], *equals = strrchr(item, '='), *end;
        double value;
        if (!equals || !number_read(equals + 1, &end, &value) || *end || !(value > 0))
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--price' is '%.80s' (expected MACHINE=USD, such as p4d.24xlarge=21.96)", item);
        if (!is_price_of(item, equals, name)) continue;
        *found = true;
        *usd = value;
    }
    return STATUS_OK;
}

static enum status add_part(const struct what_if_prices *prices, const char *text, struct what_if_price *sum,
                            bool *known, struct error *err)
{
    struct machine_name part;
    double usd;
    bool given;
    if (!machine_name_split(text, &part)) {
        *known = false;
        return STATUS_OK;
    }
    const double count = (double)part.count;
    TRY(find_given(prices->given, part.name, &given, &usd, err));
    if (given) {
        sum->usd_per_h += count * usd;
        snprintf(sum->basis, sizeof sum->basis, "as given");
        sum->given = true;
        return STATUS_OK;
    }
    const struct price *price = prices->list ? price_find(prices->list, part.name, prices->basis) : NULL;
    if (!price) {
        *known = false;
        return STATUS_OK;
    }
    sum->usd_per_h += count * price->usd_per_h;
    snprintf(sum->basis, sizeof sum->basis, "%s", price->basis);
    snprintf(sum->as_of, sizeof sum->as_of, "%s", price->as_of);
    return STATUS_OK;
}

static bool has_part(const char *machine, const char *item, const char *equals)
{
    char text[MACHINE_BYTES];
    struct machine_name name;
    bool found = false;
    snprintf(text, sizeof text, "%s", machine);
    for (char *part = text, *rest; part && !found; part = rest) {
        rest = strchr(part, '+');
        if (rest) *rest++ = '\0';
        found = machine_name_split(part, &name) && is_price_of(item, equals, name.name);
    }
    return found;
}

enum status what_if_prices_check(const struct option_list *given, const struct what_if_answer *answers, uint32_t count,
                                 struct error *err)
{
    for (size_t i = 0; i < given->count; i++) {
        const char *item = given->items[i], *equals = strrchr(item, '=');
        uint32_t a = 0;
        while (a < count && !has_part(answers[a].name, item, equals)) a++;
        if (a == count)
            return error_set(err, STATUS_BAD_INPUT, "option '--price' is '%.80s', but no machine is a '%.*s'", item,
                             (int)(equals - item), item);
    }
    return STATUS_OK;
}

enum status what_if_price(const struct what_if_prices *prices, const char *machine, uint32_t devices,
                          struct what_if_price *out, struct error *err)
{
    bool known = true;
    struct what_if_price sum = {0};
    char text[MACHINE_BYTES];
    snprintf(text, sizeof text, "%s", machine);
    for (char *part = text, *rest; part; part = rest) {
        rest = strchr(part, '+');
        if (rest) *rest++ = '\0';
        TRY(add_part(prices, part, &sum, &known, err));
    }
    if (!known) sum = (struct what_if_price){0};
    if (!known && prices->usd_per_gpu_hour >= 0) {
        sum.usd_per_h = devices * prices->usd_per_gpu_hour;
        sum.given = true;
        snprintf(sum.basis, sizeof sum.basis, "as given per GPU");
    }
    *out = sum;
    return STATUS_OK;
}

void what_if_price_electricity(double watts, double usd_per_kwh, struct what_if_price *price)
{
    char rent[sizeof price->basis];
    bool rented = price->usd_per_h > 0;
    snprintf(rent, sizeof rent, "%s", price->basis);
    price->usd_per_h += watts / 1000 * usd_per_kwh;
    if (rented) snprintf(price->basis, sizeof price->basis, "%.60s + electricity", rent);
    else snprintf(price->basis, sizeof price->basis, "only electricity");
    if (!rented) price->given = true;
}

double what_if_time_s(const struct what_if_report *report, const struct what_if_answer *answer, double run_s)
{
    return report->tokens > 0 ? run_s * report->tokens / answer->tokens : run_s;
}

double what_if_cost_usd(const struct what_if_report *report, const struct what_if_answer *answer, double run_s)
{
    return what_if_time_s(report, answer, run_s) / 3600 * answer->price.usd_per_h;
}
