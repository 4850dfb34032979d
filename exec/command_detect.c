/* spillway-exec detect: describes this machine without measurements. */
#include "base/process/options.h"
#include "base/size.h"
#include "exec/command.h"
#include "exec/measure/detect.h"
#include "models/hardware/hardware.h"

enum status command_detect(int argc, char **argv, const volatile bool *stop, struct error *err)
{
    (void)stop; /* done at once */
    const char *output = "-";
    bool quiet = false, force = false;
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_HARDWARE, &output,
                      "hardware file to write (default: standard output)"),
        OPTION_FORCE(&force),
        OPTION_FLAG("quiet", 'q', &quiet, "print no notes"),
    };
    struct options options = {
        .command = "spillway-exec detect",
        .arguments = "",
        .summary = "describe this machine in a hardware file, without measurements",
        .examples = (const char *const[]){"spillway-exec detect -o machine.json", NULL},
        OPTIONS_TABLE(specs, 0, 0),
    };
    bool go_on;
    if (command_parse(&options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    struct hardware hardware = {0};
    enum status status = detect_machine(quiet ? NULL : stderr, &hardware, err);
    if (status == STATUS_OK) status = hardware_check(&hardware, err);
    if (status == STATUS_OK) status = hardware_write_file(&hardware, output, err);
    hardware_release(&hardware);
    return status;
}
