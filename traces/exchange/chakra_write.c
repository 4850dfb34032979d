/* Writes nodes. A node is built in memory, since its length comes before it. */
#include "traces/exchange/chakra.h"

#include <assert.h>
#include <string.h>

#include "traces/exchange/chakra_fields.h"

static const char version[] = "1.0.0";

void chakra_writer_release(struct chakra_writer *writer)
{
    protobuf_out_release(&writer->node);
    protobuf_out_release(&writer->attribute);
}

/* Writes the length and the message, and empties the message. */
static enum status flush(struct protobuf_out *message, struct file_out *file, struct error *err)
{
    uint8_t length[PROTOBUF_VARINT_BYTES];
    if (message->failed) return error_set(err, STATUS_NO_MEMORY, "not enough memory for a node of a trace");
    file_out_write(file, length, protobuf_varint(message->length, length));
    file_out_write(file, message->bytes, message->length);
    message->length = 0;
    return STATUS_OK;
}

enum status chakra_write_header(struct chakra_writer *writer, struct file_out *file, struct error *err)
{
    assert(writer->node.length == 0);
    protobuf_out_string(&writer->node, CHAKRA_METADATA_VERSION, version);
    return flush(&writer->node, file, err);
}

static struct protobuf_out *begin_attribute(struct chakra_writer *writer, const char *name)
{
    writer->attribute.length = 0;
    protobuf_out_string(&writer->attribute, CHAKRA_ATTRIBUTE_NAME, name);
    return &writer->attribute;
}

static void end_attribute(struct chakra_writer *writer)
{
    writer->node.failed |= writer->attribute.failed;
    if (!writer->attribute.failed)
        protobuf_out_bytes(&writer->node, CHAKRA_NODE_ATTRIBUTE, writer->attribute.bytes, writer->attribute.length);
}

/* `type` is one of the attribute's integer fields whose wire form is a plain varint. */
static void put_u64(struct chakra_writer *writer, const char *name, uint32_t type, uint64_t value)
{
    protobuf_out_u64(begin_attribute(writer, name), type, value);
    end_attribute(writer);
}

static void put_string(struct chakra_writer *writer, const char *name, const char *text)
{
    if (!text) return;
    protobuf_out_string(begin_attribute(writer, name), CHAKRA_ATTRIBUTE_STRING, text);
    end_attribute(writer);
}

static void put_attributes(struct chakra_writer *writer, const struct chakra_node *node)
{
    bool message = node->type == CHAKRA_SEND || node->type == CHAKRA_RECV;
    put_u64(writer, "is_cpu_op", CHAKRA_ATTRIBUTE_BOOL, node->is_cpu_op);
    if (node->num_ops > 0) put_u64(writer, "num_ops", CHAKRA_ATTRIBUTE_INT64, node->num_ops);
    if (node->tensor_size > 0) put_u64(writer, "tensor_size", CHAKRA_ATTRIBUTE_UINT64, node->tensor_size);
    if (node->type == CHAKRA_COLLECTIVE) put_u64(writer, "comm_type", CHAKRA_ATTRIBUTE_INT64, node->comm_type);
    if (message || node->type == CHAKRA_COLLECTIVE)
        put_u64(writer, "comm_size", CHAKRA_ATTRIBUTE_INT64, node->comm_size);
    if (message && node->comm_src != CHAKRA_NONE) put_u64(writer, "comm_src", CHAKRA_ATTRIBUTE_INT32, node->comm_src);
    if (message && node->comm_dst != CHAKRA_NONE) put_u64(writer, "comm_dst", CHAKRA_ATTRIBUTE_INT32, node->comm_dst);
    if (message) put_u64(writer, "comm_tag", CHAKRA_ATTRIBUTE_INT32, node->comm_tag);
    put_string(writer, "pg_name", node->pg_name);
    put_string(writer, "spillway_stream", node->stream);
    put_string(writer, "spillway_algorithm", node->algorithm);
    if (node->family != CHAKRA_NONE) put_u64(writer, "spillway_family", CHAKRA_ATTRIBUTE_INT64, node->family);
    if (node->is_signal) put_u64(writer, "spillway_signal", CHAKRA_ATTRIBUTE_BOOL, 1);
    if (node->has_seconds) {
        protobuf_out_double(begin_attribute(writer, "spillway_seconds"), CHAKRA_ATTRIBUTE_DOUBLE, node->seconds);
        end_attribute(writer);
    }
}

enum status chakra_write_node(struct chakra_writer *writer, struct file_out *file,
                              const struct chakra_node *node, struct error *err)
{
    struct protobuf_out *out = &writer->node;
    assert(out->length == 0);
    protobuf_out_u64(out, CHAKRA_NODE_ID, node->id);
    protobuf_out_string(out, CHAKRA_NODE_NAME, node->name);
    protobuf_out_u64(out, CHAKRA_NODE_TYPE, node->type);
    if (node->ctrl_count > 0) protobuf_out_packed(out, CHAKRA_NODE_CTRL_DEPS, node->ctrl_deps, node->ctrl_count);
    if (node->data_count > 0) protobuf_out_packed(out, CHAKRA_NODE_DATA_DEPS, node->data_deps, node->data_count);
    if (node->duration_micros > 0) protobuf_out_u64(out, CHAKRA_NODE_DURATION_MICROS, node->duration_micros);
    put_attributes(writer, node);
    return flush(out, file, err);
}
