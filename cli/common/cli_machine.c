/*
 * Without --hw a plan is for this machine's profile. Its path follows the XDG base directory specification. If it is
 * missing, the message names the command that makes it.
 */
#include "cli/common/cli_machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/try.h"

/* 2^60 bytes and 10^18 bytes/s exceed every machine; doubles and uint64_t hold them. */
static const double bytes_max = 0x1p60;
static const double rate_max = 1e18;

enum status cli_profile_path(char path[CLI_PATH_BYTES], struct error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int length;
    if (config && config[0] == '/')
        length = snprintf(path, CLI_PATH_BYTES, "%s/spillway/hardware.json", config);
    else if (home && home[0])
        length = snprintf(path, CLI_PATH_BYTES, "%s/.config/spillway/hardware.json", home);
    else
        return error_set(err, STATUS_BAD_INPUT,
                         "there is no place for settings: neither XDG_CONFIG_HOME nor HOME is set "
                         "(name a file with -o when measuring and --hw when planning)");
    if (length < 0 || length >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "the path of the settings folder is too long (limit is "
                         "%d bytes)", CLI_PATH_BYTES);
    return STATUS_OK;
}

enum status cli_bytes(double given, const char *option, uint64_t *out, struct error *err)
{
    if (given < 0) {
        *out = 0;
        return STATUS_OK;
    }
    char text[QUANTITY_TEXT_BYTES];
    if (given < 1 || given > bytes_max)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--%s' is %s (expected 1 B to 1048576 TiB)", option,
                         quantity_text(given, DIMENSION_BYTES, text));
    *out = (uint64_t)given;
    return STATUS_OK;
}

/* Returns 0 when not given. */
static enum status rate_of(double given, const char *option, double *out, struct error *err)
{
    *out = 0;
    if (given < 0) return STATUS_OK;
    if (given < 1 || given > rate_max)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--%s' is %g B/s (expected 1 B/s to 1000000 TB/s)", option, given);
    *out = given;
    return STATUS_OK;
}

static enum status read_profile(const struct cli_machine *machine, struct hardware *out, struct error *err)
{
    char path[CLI_PATH_BYTES];
    TRY(cli_profile_path(path, err));
    if (access(path, F_OK) != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "this machine has not been measured yet: there is no '%s' (run "
                         "'spillway measure', or name a machine%s; 'spillway hardware "
                         "list' shows those known)", path, machine->is_argument ? "" : " with --hw");
    return hardware_read(path, out, err);
}

static enum status read_options(const struct cli_machine *machine, struct hardware_options *out, struct error *err)
{
    struct hardware_options options = {
        .device_count = (uint32_t)machine->devices,
        .threads = (uint32_t)machine->threads,
        .no_p2p = machine->no_p2p,
        .no_tf32 = machine->no_tf32,
        .stack = machine->stack == STACK_COUNT ? 0 : 1 + (uint32_t)machine->stack,
    };
    if (machine->matmul_efficiency >= 0) {
        if (!(machine->matmul_efficiency > 0 && machine->matmul_efficiency <= 1))
            return error_set(err, STATUS_BAD_INPUT, "--matmul-efficiency is %g (expected more than 0 and at most 1)",
                             machine->matmul_efficiency);
        options.matmul_efficiency = machine->matmul_efficiency;
    }
    if (machine->dilation >= 0) {
        if (!(machine->dilation >= 1 && machine->dilation <= HARDWARE_DILATION_MAX))
            return error_set(err, STATUS_BAD_INPUT, "--dilate is %g (expected 1 to %d)", machine->dilation,
                             HARDWARE_DILATION_MAX);
        if (machine->threads > 1)
            return error_set(err, STATUS_BAD_INPUT,
                             "--dilate gives each device one thread, and --threads says %" PRIu64, machine->threads);
        options.dilation = machine->dilation;
    }
    TRY(cli_bytes(machine->device_memory_bytes, "device-memory", &options.device_memory_bytes, err));
    TRY(cli_bytes(machine->host_memory_bytes, "host-memory", &options.host_memory_bytes, err));
    TRY(cli_bytes(machine->storage_bytes, "storage-memory", &options.storage_bytes, err));
    TRY(rate_of(machine->link_bytes_per_s, "link-rate", &options.link_bytes_per_s, err));
    TRY(rate_of(machine->p2p_bytes_per_s, "p2p-rate", &options.p2p_bytes_per_s, err));
    TRY(rate_of(machine->nic_bytes_per_s, "nic-rate", &options.nic_bytes_per_s, err));
    TRY(rate_of(machine->storage_bytes_per_s, "storage-rate", &options.storage_bytes_per_s, err));
    *out = options;
    return STATUS_OK;
}

enum status cli_machine_adjust(const struct cli_machine *machine, struct hardware *hardware, struct error *err)
{
    struct hardware_options options;
    TRY(read_options(machine, &options, err));
    return hardware_adjust(hardware, &options, err);
}

enum status cli_machine_read(const struct cli_machine *machine, struct hardware *out, struct error *err)
{
    struct hardware_options options;
    TRY(read_options(machine, &options, err));
    TRY(machine->name ? hardware_find(machine->name, out, err) : read_profile(machine, out, err));
    return hardware_adjust(out, &options, err);
}

const char *cli_machine_text(const struct hardware *hardware, char text[CLI_MACHINE_TEXT_BYTES])
{
    char memory[QUANTITY_TEXT_BYTES], rate[QUANTITY_TEXT_BYTES];
    const struct hardware_device *device = &hardware->devices[0];
    if (hardware->type_count > 1) { /* its name has the kinds and counts */
        snprintf(text, CLI_MACHINE_TEXT_BYTES, "'%s'", hardware->name);
        return text;
    }
    int length = snprintf(text, CLI_MACHINE_TEXT_BYTES, "%u x '%s' with %s", hardware->device_count,
                          hardware->types[device->type].name,
                          quantity_text((double)device->memory_bytes, DIMENSION_BYTES, memory));
    if (device->path_count > 0 && length > 0 && length < CLI_MACHINE_TEXT_BYTES) {
        const struct hardware_link *link = &hardware->links[device->path[device->path_count - 1]];
        snprintf(text + length, CLI_MACHINE_TEXT_BYTES - (size_t)length, ", link %s%s",
                 quantity_text(link->bandwidth.value, DIMENSION_BYTES_PER_S, rate),
                 link->paced ? " (paced)" : "");
    }
    return text;
}
