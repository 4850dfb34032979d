/* Reads models from text, writes them to text, and compares messages. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_MODELS_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_MODELS_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Parse a network, job set or machine from `text`, named "test" in messages. */
enum status support_network(const char *text, struct arena *arena, struct network *out,
                            struct error *err);
enum status support_jobs(const char *text, const char *folder, struct job_set *out,
                         struct error *err);
enum status support_hardware(const char *text, struct hardware *out, struct error *err);

/* Finds the machine of that name. Fails the test if there is none. The caller releases it. */
void support_machine(const char *name, struct hardware *out);

/* Checks that the network in `text` is refused with this message and leaves its target untouched. */
void support_network_refused(const char *text, const char *message);

/* Return texts as the modules write them; the caller frees them. NULL if memory runs out. */
char *support_network_text(const struct network *network);
char *support_jobs_text(const struct job_set *set);
char *support_hardware_text(const struct hardware *hardware);

/* Returns the measured rate of collectives of one process with these values, or NULL. Borrowed. */
const struct collective_rate *support_collective_rate(const struct device_type *type, uint32_t kind, uint32_t members,
                                                      uint32_t computing);

#endif
