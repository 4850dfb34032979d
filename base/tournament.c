#include "base/tournament.h"

#include "base/try.h"

enum status tournament_create(struct arena *arena, uint32_t count, double key, struct tournament *out,
                              struct error *err)
{
    uint32_t leaves = 1;
    while (leaves < count) leaves *= 2;
    *out = (struct tournament){.leaves = leaves};
    TRY(ARENA_NEW(arena, 2 * (size_t)leaves, out->keys, err));
    for (uint32_t i = 0; i < leaves; i++) out->keys[leaves + i] = i < count ? key : HUGE_VAL;
    for (uint32_t i = leaves; i-- > 1;) out->keys[i] = min_s(out->keys[2 * i], out->keys[2 * i + 1]);
    return STATUS_OK;
}
