/* The table's entries of kernels over numbers. Compiled for fp32 and for bf16 (kernels_host.h). */
#include "exec/kernels/kernels_host.h"

void HOST(put_number_kernels)(struct kernels *kernels)
{
    kernels->number_bytes = sizeof(kernel_number);
    kernels->linear_forward = HOST(linear_forward);
    kernels->linear_input = HOST(linear_input);
    kernels->linear_forward_bf16 = HOST(linear_forward_bf16);
    kernels->linear_weight = HOST(linear_weight);
    kernels->embed_forward = HOST(embed_forward);
    kernels->embed_forward_bf16 = HOST(embed_forward_bf16);
    kernels->embed_update = HOST(embed_update);
    kernels->embed_gradient = HOST(embed_gradient);
    kernels->norm_forward = HOST(norm_forward);
    kernels->norm_backward = HOST(norm_backward);
    kernels->rms_norm_forward = HOST(rms_norm_forward);
    kernels->rms_norm_backward = HOST(rms_norm_backward);
    kernels->attention_forward = HOST(attention_forward);
    kernels->attention_backward = HOST(attention_backward);
    kernels->rope = HOST(rope);
    kernels->gelu_forward = HOST(gelu_forward);
    kernels->gelu_backward = HOST(gelu_backward);
    kernels->relu_forward = HOST(relu_forward);
    kernels->relu_backward = HOST(relu_backward);
    kernels->swiglu_forward = HOST(swiglu_forward);
    kernels->swiglu_backward = HOST(swiglu_backward);
    kernels->geglu_forward = HOST(geglu_forward);
    kernels->geglu_backward = HOST(geglu_backward);
    kernels->route = HOST(route);
    kernels->route_backward = HOST(route_backward);
    kernels->send = HOST(send);
    kernels->collect = HOST(collect);
    kernels->collect_backward = HOST(collect_backward);
    kernels->gate_rows = HOST(gate_rows);
    kernels->gate_rows_backward = HOST(gate_rows_backward);
    kernels->dropout = HOST(dropout);
    kernels->residual = HOST(residual);
    kernels->scale = HOST(scale);
    kernels->copy_rows = HOST(copy_rows);
    kernels->patches = HOST(patches);
    kernels->join_forward = HOST(join_forward);
    kernels->join_backward = HOST(join_backward);
    kernels->first_forward = HOST(first_forward);
    kernels->first_backward = HOST(first_backward);
    kernels->number_squares = HOST(squares);
}
