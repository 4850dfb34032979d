/*
 * Prices of machines per hour: RFC 4180, a header row, columns in any order.
 *
 *     InstanceType     the machine, as in `hardware list` (prefix "aws:" allowed); if it is empty:
 *     AcceleratorName  a GPU, and the price is for AcceleratorCount of them (default 1)
 *     Price            USD per hour on demand
 *     SpotPrice        USD per hour as spot instance
 *     Region
 *     as_of            2026-09 or 2026-09-25; without this column prices have no date
 *     basis            basis of Price, if not on_demand: reserved_1y, capacity_block, ...
 *     source
 *
 * The columns are SkyPilot's plus as_of, basis and source; its others are ignored. The lowest of
 * several prices with one basis counts.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_PRICES_H
#define SPILLWAY_MODELS_HARDWARE_PRICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { PRICES_MAX = 100000 };

/* Strings live as long as the list's arena; "" when unknown. */
struct price {
    const char *machine;
    double usd_per_h; /* for one machine */
    const char *basis, *as_of, *region, *source;
};

/* A zeroed list is empty. */
struct price_list {
    struct arena arena;
    struct price *prices; /* malloc'ed */
    uint32_t count;
    size_t capacity;
};

/* Adds a file's prices. The caller releases the list also after an error. Errors: STATUS_BAD_INPUT with line and
 * column; STATUS_LIMIT; STATUS_IO. */
MUST_CHECK enum status price_list_read(const char *path, struct price_list *out, struct error *err);
/* Works on a text; `name` is for messages. */
MUST_CHECK enum status price_list_parse(const char *name, const char *text, size_t length, struct price_list *out,
                                        struct error *err);
void price_list_release(struct price_list *list);

/* Returns the name without "aws:", borrowed. */
const char *price_machine(const char *machine);

/* Returns the lowest price with this basis, or NULL. `machine` may have the prefix "aws:". */
const struct price *price_find(const struct price_list *list, const char *machine, const char *basis);

/* Computes days; "2026-09" counts as the first day of the month. Returns false when a date is invalid. */
bool price_days_between(const char *from, const char *to, int64_t *days);

#endif
