/* TRY(call) returns the status of a call that fails. It keeps readers, which are long sequences of
 * such calls, short. Only for functions that have nothing to undo. */
#ifndef SPILLWAY_BASE_TRY_H
#define SPILLWAY_BASE_TRY_H

#include "base/error.h"

#define TRY(call)                                       \
    do {                                                \
        enum status try_status = (call);                \
        if (try_status != STATUS_OK) return try_status; \
    } while (0)

#endif
