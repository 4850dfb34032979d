/* The claims of a timetable's file that were proven again (`plan --schedule-from`). */
#ifndef SPILLWAY_CLI_REPORTS_CLI_CLAIM_H
#define SPILLWAY_CLI_REPORTS_CLI_CLAIM_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/spill/order/order_of_instance.h"

void cli_claim_text(FILE *out, const struct order_claim *claim);

/* Writes the object "timetable". */
void cli_claim_json(struct json_out *json, const struct order_claim *claim);

#endif
