/*
 * Pieces of a hardware file for tests of its reader: HEAD TYPES LINKS DEVICES is a small machine, and each may be another
 * piece in a test that breaks one thing.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_HARDWARE_TEXT_H
#define SPILLWAY_TESTS_SUPPORT_HARDWARE_TEXT_H

#define FIGURE(value, unit) \
    "{\"value\": " value ", \"unit\": \"" unit "\", \"kind\": \"measured\", \"source\": \"s\", " \
    "\"as_of\": \"2026-11\", \"spread\": 0.03}"
#define HEAD \
    "{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"host\",\n\"host\": {\"memory\": " \
    FIGURE("24", "GiB") ", \"cores\": 2, \"threads\": 1},\n"
#define TYPES \
    "\"device_types\": [{\"name\": \"core\", \"memory\": " FIGURE("8", "GiB") ",\"peak_fp32\": " \
    FIGURE("200.5", "GFLOP/s") ", \"memory_bandwidth\": " FIGURE("14.5", "GB/s") "}],\n"
#define LINKS \
    "\"links\": [{\"name\": \"dram\", \"bandwidth\": " FIGURE("11.4", "GB/s") ", \"latency\": " \
    FIGURE("1.7", "us") ", \"duplex\": false}],\n"
#define DEVICES "\"devices\": [{\"type\": \"core\", \"path\": [\"dram\"]}]}"

#endif
