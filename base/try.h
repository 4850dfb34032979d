/* Readers are long rows of calls that may fail: TRY(call) returns its status when it does. Only for
 * functions that have nothing to undo. */
#ifndef SPILLWAY_BASE_TRY_H
#define SPILLWAY_BASE_TRY_H

#include "base/error.h"

#define TRY(call)                                       \
    do {                                                \
        enum status try_status = (call);                \
        if (try_status != STATUS_OK) return try_status; \
    } while (0)

#endif
