/*
 * Pieces of a hardware file for tests of its reader: HEAD TYPES LINKS DEVICES is a small machine, and each may be
 * another piece in a test that breaks one thing.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_HARDWARE_TEXT_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_HARDWARE_TEXT_H

#define SOURCED_VALUE(value, unit) \
    "{\"value\": " value ", \"unit\": \"" unit "\", \"kind\": \"measured\", \"source\": \"s\", " \
    "\"as_of\": \"2026-11\", \"spread\": 0.03}"
#define HEAD \
    "{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"host\",\n\"host\": {\"memory\": " \
    SOURCED_VALUE("24", "GiB") ", \"cores\": 2, \"threads\": 1},\n"
#define TYPES \
    "\"device_types\": [{\"name\": \"core\", \"memory\": " SOURCED_VALUE("8", "GiB") ",\"peak_fp32\": " \
    SOURCED_VALUE("200.5", "GFLOP/s") ", \"memory_bandwidth\": " SOURCED_VALUE("14.5", "GB/s") "}],\n"
#define LINKS \
    "\"links\": [{\"name\": \"dram\", \"bandwidth\": " SOURCED_VALUE("11.4", "GB/s") ", \"latency\": " \
    SOURCED_VALUE("1.7", "us") ", \"duplex\": false}],\n"
#define DEVICES "\"devices\": [{\"type\": \"core\", \"path\": [\"dram\"]}]}"

#endif
