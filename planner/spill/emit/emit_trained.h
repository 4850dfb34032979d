/* What a backward pass trains: a state, or parameters whose gradient the host's processor applies. */
#ifndef SPILLWAY_PLANNER_EMIT_TRAINED_H
#define SPILLWAY_PLANNER_EMIT_TRAINED_H

#include "planner/spill/emit/emit_unit.h"

/* Bring what the pass works on, the state or the parameters, and return its buffer; use it, and a new
 * gradient with parameters; send the state back, or the gradient, and have it applied. */
uint32_t emit_fetch_trained(struct emitter *e, const struct shard_view *v);
void emit_use_trained(struct emitter *e, const struct shard_view *v, uint32_t trained);
void emit_send_trained(struct emitter *e, const struct shard_view *v, uint32_t trained);

/* The shard's gradient on the host; of a job that does not clip, in turn one of a few. */
uint32_t emit_host_gradient(struct emitter *e, const struct shard_view *v);

/* What the gradient on the host adds to the norm of all, of a job that clips. */
void emit_norm(struct emitter *e, const struct shard_view *v);

/* Apply it to the state in host memory, or to the staged copy of one on storage. */
void emit_update(struct emitter *e, const struct shard_view *v);

#endif
