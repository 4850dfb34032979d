/* Code that both uses of GLPK share. See milp_glpk.h. */
#include "planner/solve/milp/milp_glpk.h"

#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <unistd.h>

void milp_glpk_send(int pipe, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t done = write(pipe, at, length);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) _exit(3); /* the parent has stopped reading */
        at += done;
        length -= (size_t)done;
    }
}

int milp_glpk_bounds(double low, double high)
{
    if (low == -HUGE_VAL) return high == HUGE_VAL ? GLP_FR : GLP_UP;
    if (high == HUGE_VAL) return GLP_LO;
    return low == high ? GLP_FX : GLP_DB;
}
