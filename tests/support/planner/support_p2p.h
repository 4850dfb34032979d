/* Copies between two devices of a back end, checked byte for byte. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_P2P_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_P2P_H

#include "exec/device/device_p2p.h"

typedef enum status (*p2p_open)(const struct device_options *options, struct device **out,
                                struct error *err);

/* Opens devices 0 and 1 with these options, an arena of 5 MiB and a P2P stream each. Links them in both directions
 * and checks that copies go `way`. */
void p2p_open_pair(p2p_open open, struct device_options options, enum p2p_way way,
                   struct device *pair[2]);
void p2p_close_pair(struct device *pair[2]);

/* Copies odd sizes to odd places, from 0 to 1 and from 1 to 0, and checks every byte there and around. Returns the
 * seconds of the slower of two copies of 3 MiB. */
double p2p_check_copies(struct device *pair[2]);

#endif
