#include "cli/machine/cli_shipped_prices.h"

#include <unistd.h>

#include "base/files/path.h"

bool cli_shipped_prices(char path[CLI_PATH_BYTES])
{
    static const char source[] = SPILLWAY_PRICES_SOURCE, installed[] = "../share/spillway/prices-2026-11.csv";
    struct error unknown = {0};
    if (path_from_program(installed, path, CLI_PATH_BYTES, &unknown) == STATUS_OK && access(path, R_OK) == 0)
        return true;
    return snprintf(path, CLI_PATH_BYTES, "%s", source) < CLI_PATH_BYTES && access(path, R_OK) == 0;
}
