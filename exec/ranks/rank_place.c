#include "exec/ranks/rank_place.h"

#include <inttypes.h>

static bool by_node(const struct hardware *hardware)
{
    return hardware_host_count(hardware) > 1;
}

uint32_t rank_of_device(const struct hardware *hardware, uint32_t ranks, uint32_t device)
{
    const uint64_t whole = by_node(hardware) ? hardware_host_count(hardware) : hardware->device_count;
    const uint64_t at = by_node(hardware) ? device / hardware->node_devices : device;
    return (uint32_t)(at * ranks / whole);
}

enum status rank_place_check(const struct hardware *hardware, uint32_t ranks, struct error *err)
{
    const uint32_t whole = by_node(hardware) ? hardware_host_count(hardware) : hardware->device_count;
    if (ranks <= whole) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "the plan is for %" PRIu32 " %s, too few for %" PRIu32 " ranks", whole,
                     by_node(hardware) ? "nodes" : "devices", ranks);
}
