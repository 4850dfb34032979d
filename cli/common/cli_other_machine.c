#include "cli/common/cli_other_machine.h"

#include "base/text/quantity.h"
#include "base/try.h"
#include "planner/files/plan_io.h"

/* Checks for the plan's number of devices, and for memory. */
static enum status fit_named(const struct cli_machine *machine, const struct plan *plan,
                               struct hardware *hardware, struct error *err)
{
    struct cli_machine wanted = *machine;
    wanted.devices = plan->hardware.device_count;
    TRY(cli_machine_read(&wanted, hardware, err));
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        char need[QUANTITY_TEXT_BYTES], have[QUANTITY_TEXT_BYTES];
        if (plan_device_bytes(plan, d) <= hardware->devices[d].memory_bytes) continue;
        return error_set(err, STATUS_INFEASIBLE,
                         "the plan uses %s of device %u, but devices of '%s' have %s",
                         quantity_text((double)plan_device_bytes(plan, d), DIMENSION_BYTES, need),
                         d, hardware->name,
                         quantity_text((double)hardware->devices[d].memory_bytes, DIMENSION_BYTES,
                                       have));
    }
    return STATUS_OK;
}

enum status cli_other_machine_find(const struct cli_machine *machine, const char *path, const struct plan *plan,
                                   struct cli_other_machine *out, struct error *err)
{
    if (machine->name) {
        out->hardware = &out->named;
        return fit_named(machine, plan, &out->named, err);
    }
    if (!cli_machine_speeds_given(machine)) return STATUS_OK;
    out->hardware = &out->own.hardware;
    TRY(plan_read(path, &out->own, err));
    return cli_machine_adjust(machine, &out->own.hardware, err);
}

void cli_other_machine_release(struct cli_other_machine *other)
{
    hardware_release(&other->named);
    plan_release(&other->own);
    other->hardware = NULL;
}
