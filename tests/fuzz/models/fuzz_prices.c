/* Tables of prices on any bytes: refused with a message, or prices of which each is one and is found. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "models/hardware/prices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct price_list list = {0};
    struct error err = {0};
    enum status status = price_list_parse("fuzz", (const char *)data, size, &list, &err);
    assert(status == STATUS_OK || strncmp(err.text, "fuzz:", 5) == 0);
    for (uint32_t i = 0; status == STATUS_OK && i < list.count && i < 100; i++) {
        const struct price *price = &list.prices[i];
        int64_t days;
        assert(isfinite(price->usd_per_h) && price->usd_per_h >= 0);
        assert(price->machine[0] && price->basis && price->region && price->source);
        const struct price *found = price_find(&list, price->machine, price->basis);
        assert(found && found->usd_per_h <= price->usd_per_h);
        assert(price->as_of[0] == '\0' || price_days_between(price->as_of, "2026-11-22", &days));
    }
    price_list_release(&list);
    return 0;
}
