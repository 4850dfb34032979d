#include "models/kernel/work_list.h"

#include <assert.h>
#include <stdbool.h>

#include "base/size.h"

uint64_t work_product(uint64_t a, uint64_t b)
{
    uint64_t product = UINT64_MAX;
    size_mul(a, b, &product);
    return product;
}

static bool same_kernel(const struct work_item *a, const struct work_item *b)
{
    if (a->kernel != b->kernel) return false;
    return a->kernel == KERNEL_FIXED || (a->m == b->m && a->n == b->n && a->k == b->k);
}

void work_list_add(struct work_list *list, const struct work_item *item, uint64_t times)
{
    uint64_t count = work_product(item->count, times);
    if (count > UINT32_MAX) count = UINT32_MAX;
    struct work_item added = *item;
    added.count = (uint32_t)count;
    if (item->kernel == KERNEL_FIXED) {
        added.count = 1;
        added.m = work_product(item->m, count);
    }

    for (uint32_t i = 0; i < list->count; i++) {
        struct work_item *known = &list->items[i];
        if (!same_kernel(known, &added)) continue;
        if (known->kernel == KERNEL_FIXED)
            known->m = known->m > UINT64_MAX - added.m ? UINT64_MAX : known->m + added.m;
        else
            known->count = known->count > UINT32_MAX - added.count ? UINT32_MAX
                                                                   : known->count + added.count;
        return;
    }
    assert(list->count < list->capacity);
    list->items[list->count++] = added;
}
