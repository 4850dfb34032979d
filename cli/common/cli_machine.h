/* A verb's machine, from its options. */
#ifndef SPILLWAY_CLI_COMMON_CLI_MACHINE_H
#define SPILLWAY_CLI_COMMON_CLI_MACHINE_H

#include "cli/common/cli.h"
#include "models/hardware/hardware.h"

#define CLI_NOT_GIVEN (-1.0) /* given quantities are never negative */

struct cli_machine {
    const char *name; /* preset or file; NULL: this machine's profile */
    uint64_t devices; /* 0: all; `threads` likewise */
    uint64_t threads;
    double device_memory_bytes, link_bytes_per_s, host_memory_bytes; /* or CLI_NOT_GIVEN */
    double storage_bytes, storage_bytes_per_s, p2p_bytes_per_s, nic_bytes_per_s; /* likewise */
    double matmul_efficiency, dilation; /* or CLI_NOT_GIVEN */
    size_t stack;             /* enum hardware_stack; STACK_COUNT: the machine's */
    bool no_p2p, no_tf32;
    bool is_argument;         /* instead of by --hw */
};

#define CLI_MACHINE_NONE                                                                          \
    {.device_memory_bytes = CLI_NOT_GIVEN,                                                        \
     .link_bytes_per_s = CLI_NOT_GIVEN,                                                           \
     .host_memory_bytes = CLI_NOT_GIVEN,                                                          \
     .storage_bytes = CLI_NOT_GIVEN,                                                              \
     .storage_bytes_per_s = CLI_NOT_GIVEN,                                                        \
     .p2p_bytes_per_s = CLI_NOT_GIVEN,                                                            \
     .nic_bytes_per_s = CLI_NOT_GIVEN,                                                            \
     .matmul_efficiency = CLI_NOT_GIVEN,                                                          \
     .dilation = CLI_NOT_GIVEN,                                                                   \
     .stack = STACK_COUNT}

/* For one machine; for several the message points to `whatif`. */
#define CLI_MACHINE_OPTION(out_, help_)                                                           \
    {.name = "hw", .type = OPTION_TYPE_STRING, .value = "MACHINE", .out = out_, .help = help_,    \
     .once = "one machine; 'spillway whatif' compares several"}

/* `m` points to a struct cli_machine. */
#define CLI_MACHINE_NAME(m)                                                                       \
    CLI_MACHINE_OPTION(&(m)->name,                                                                \
                       "machine name ('hardware list') or file (default: the measured profile)")
#define CLI_MACHINE_SIZES(m)                                                                      \
    OPTION_U64("devices", 0, "N", 1, HARDWARE_DEVICES_MAX, &(m)->devices, "number of devices to use"),     \
        OPTION_QUANTITY("device-memory", 0, "SIZE", DIMENSION_BYTES, &(m)->device_memory_bytes,   \
                        "memory of each device, such as 96MiB"),                                  \
        OPTION_QUANTITY("host-memory", 0, "SIZE", DIMENSION_BYTES, &(m)->host_memory_bytes,       \
                        "host memory that the plan may use, such as 64GiB")
#define CLI_MACHINE_SPEEDS(m)                                                                     \
    OPTION_QUANTITY("link-rate", 0, "RATE", DIMENSION_BYTES_PER_S, &(m)->link_bytes_per_s,        \
                    "rate of each device's link to the host, such as 2GB/s"),                     \
        OPTION_QUANTITY("p2p-rate", 0, "RATE", DIMENSION_BYTES_PER_S, &(m)->p2p_bytes_per_s,      \
                        "rate of the direct links between devices, such as 20GB/s"),              \
        OPTION_QUANTITY("nic-rate", 0, "RATE", DIMENSION_BYTES_PER_S, &(m)->nic_bytes_per_s,      \
                        "rate of each NIC between nodes, such as 3GB/s"),                         \
        OPTION_FLAG("no-p2p", 0, &(m)->no_p2p,                                                    \
                    "make no direct copies between devices"),                                     \
        OPTION_U64("threads", 0, "N", 1, 4096, &(m)->threads,                                     \
                   "threads of each host device"),                                                \
        OPTION_DOUBLE("dilate", 0, "F", &(m)->dilation,                                           \
                      "slow host devices down F times, so that few cores stand for many"),           \
        OPTION_DOUBLE("matmul-efficiency", 0, "SHARE", &(m)->matmul_efficiency,                   \
                      "share of peak that unmeasured matrix products reach, such as 0.4"),        \
        OPTION_FLAG("no-tf32", 0, &(m)->no_tf32,                                                  \
                    "compute fp32 products without matrix cores, as PyTorch does by default")

/* For verbs that compute costs. */
#define CLI_MACHINE_STACK(m)                                                                      \
    OPTION_CHOICE("stack", 0, "NAME", hardware_stack_names, &(m)->stack,                          \
                  "software whose overheads are counted (default spillway)")

#define CLI_MACHINE_STORAGE(m)                                                                    \
    OPTION_QUANTITY("storage-memory", 0, "SIZE", DIMENSION_BYTES, &(m)->storage_bytes,            \
                    "storage for states that do not fit host memory"),                            \
        OPTION_QUANTITY("storage-rate", 0, "RATE", DIMENSION_BYTES_PER_S,                         \
                        &(m)->storage_bytes_per_s, "rate of the storage, such as 3GB/s")

/* Returns true if an option changes speeds; the name does not count. */
static inline bool cli_machine_speeds_given(const struct cli_machine *machine)
{
    return machine->link_bytes_per_s >= 0 || machine->p2p_bytes_per_s >= 0 || machine->nic_bytes_per_s >= 0 ||
           machine->no_p2p || machine->no_tf32 || machine->threads > 0 || machine->stack != STACK_COUNT ||
           machine->matmul_efficiency >= 0 || machine->dilation >= 0;
}

/* Changes `hardware` as the options ask; machine->name is ignored. */
MUST_CHECK enum status cli_machine_adjust(const struct cli_machine *machine, struct hardware *hardware,
                                          struct error *err);

/* Finds and changes the machine. `out` is zeroed before; the caller releases it. */
MUST_CHECK enum status cli_machine_read(const struct cli_machine *machine, struct hardware *out,
                                        struct error *err);

/* Returns $XDG_CONFIG_HOME/spillway/hardware.json, or ~/.config/spillway/hardware.json. */
MUST_CHECK enum status cli_profile_path(char path[CLI_PATH_BYTES], struct error *err);

/* Converts bytes; 0 when not given. `option` is for messages. */
MUST_CHECK enum status cli_bytes(double given, const char *option, uint64_t *out,
                                 struct error *err);

/* Returns "2 x 'host' with 96 MiB, 2 GB/s links"; for several kinds of devices, the machine's name. */
enum { CLI_MACHINE_TEXT_BYTES = 256 };
const char *cli_machine_text(const struct hardware *hardware, char text[CLI_MACHINE_TEXT_BYTES]);

#endif
