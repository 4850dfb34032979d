/*
 * The options --lora-rank and --lora-targets of verbs that make jobs, and the key "adapter" that they become.
 */
#ifndef SPILLWAY_CLI_COMMON_CLI_ADAPTER_H
#define SPILLWAY_CLI_COMMON_CLI_ADAPTER_H

#include "base/json/json_out.h"
#include "cli/common/cli.h"
#include "models/network/network_trained.h"

struct cli_adapter {
    uint64_t rank;       /* 0: no adapter */
    const char *targets; /* "q_proj,v_proj", "all-linear"; NULL: the family's default */
};

#define CLI_ADAPTER_RANK(adapter)                                                                                      \
    OPTION_U64("lora-rank", 0, "N", 1, NETWORK_RANK_MAX, &(adapter)->rank,                                             \
               "train adapters of this rank; the network is frozen")
#define CLI_ADAPTER_TARGETS(adapter)                                                                                   \
    OPTION_STRING("lora-targets", 0, "NAMES", &(adapter)->targets,                                                     \
                  "modules with adapters: a,b or 'all-linear' (default: the family's)")

/* Errors: STATUS_BAD_INPUT: targets without a rank, or an empty name. */
MUST_CHECK enum status cli_adapter_check(const struct cli_adapter *adapter, struct error *err);
/* Writes the key; nothing without a rank. */
void cli_adapter_write(const struct cli_adapter *adapter, struct json_out *json);

#endif
