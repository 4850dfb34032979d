#include "cli/common/cli_factors.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/number.h"
#include "base/try.h"

static const double factor_max = 1e6;

enum status cli_factor_parse(const char **list, const char *option, const char *what, bool zero,
                             struct cli_factor *out, struct error *err)
{
    size_t length = strcspn(*list, ","), name = strcspn(*list, "=,");
    const char *element = *list, *end = element;
    bool is_factor = name > 0 && name < length && name < CLI_FACTOR_NAME_BYTES &&
                     number_read(element + name + 1, &end, &out->factor) && end == element + length;
    bool in_range = is_factor && (out->factor > 0 || (zero && out->factor >= 0)) && out->factor <= factor_max;
    if (!in_range)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--%s' has '%.*s' (expected %s=FACTOR, %s and at most %g, such as 1.5)", option,
                         (int)(length < 100 ? length : 100), element, what, zero ? "0 or more" : "more than 0",
                         factor_max);
    memcpy(out->name, element, name);
    out->name[name] = '\0';
    *list = element[length] == ',' ? element + length + 1 : NULL;
    return STATUS_OK;
}

enum status cli_device_factors(const char *list, const char *option, uint32_t device_count, struct arena *arena,
                               const double **out, struct error *err)
{
    *out = NULL;
    if (!list) return STATUS_OK;
    double *factors; /* 0: not given */
    TRY(ARENA_NEW(arena, device_count, factors, err));
    while (list) {
        struct cli_factor one;
        uint64_t device;
        TRY(cli_factor_parse(&list, option, "DEVICE", false, &one, err));
        if (!number_read_u64(one.name, &device) || device >= device_count)
            return error_set(err, STATUS_BAD_INPUT, "option '--%s' names device '%s' (expected 0 to %" PRIu32 ")",
                             option, one.name, device_count - 1);
        if (factors[device] > 0)
            return error_set(err, STATUS_BAD_INPUT, "option '--%s' names device %" PRIu64 " twice", option, device);
        factors[device] = one.factor;
    }
    for (uint32_t d = 0; d < device_count; d++)
        if (!(factors[d] > 0)) factors[d] = 1;
    *out = factors;
    return STATUS_OK;
}
