/*
 * What machines cost for an hour, from a table with a date: RFC 4180, a header row, columns in any order.
 *
 *     InstanceType     the machine, as `hardware list` has it ("aws:" in front may be); where it is empty
 *     AcceleratorName  ... a GPU, and the price is of AcceleratorCount of them (default 1)
 *     Price            USD per hour on demand
 *     SpotPrice        the same of spot
 *     Region
 *     as_of            2026-09 or 2026-09-25; without the column prices have no date
 *     basis            what Price is, if not on_demand: reserved_1y, capacity_block, ...
 *     source
 *
 * This is SkyPilot's header, and as_of, basis and source beside it; its other columns (vCPUs, MemoryGiB, GpuInfo,
 * AvailabilityZone, Arch) are not looked at. Of several prices for a machine the lowest of a basis counts.
 */
#ifndef SPILLWAY_MODELS_PRICES_H
#define SPILLWAY_MODELS_PRICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { PRICES_MAX = 100000 };

/* All strings live as long as the list's arena; "" where nothing is said. */
struct price {
    const char *machine;
    double usd_per_h; /* of one */
    const char *basis, *as_of, *region, *source;
};

/* Open; zeroed it is empty. */
struct price_list {
    struct arena arena;
    struct price *prices; /* malloc'ed */
    uint32_t count;
    size_t capacity;
};

/* Add a file's prices. Release the list also after an error. Errors: STATUS_BAD_INPUT with line and column;
 * STATUS_LIMIT; STATUS_IO; STATUS_NO_MEMORY. */
MUST_CHECK enum status price_list_read(const char *path, struct price_list *out, struct error *err);
/* The same of a text; `name` is for messages. */
MUST_CHECK enum status price_list_parse(const char *name, const char *text, size_t length, struct price_list *out,
                                        struct error *err);
MUST_CHECK enum status price_list_add(struct price_list *list, struct price price, struct error *err);
void price_list_release(struct price_list *list);

/* A machine's name without the "aws:" that may be in front; borrowed from `machine`. */
const char *price_machine(const char *machine);

/* The lowest price of one of these, or NULL. `machine` with or without "aws:". */
const struct price *price_find(const struct price_list *list, const char *machine, const char *basis);

/* Days from one date to another, "2026-09" being its first day; false where one of them is none. */
bool price_days_between(const char *from, const char *to, int64_t *days);

#endif
