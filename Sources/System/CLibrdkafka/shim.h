// librdkafka with its in-process cluster, and its variadic calls as functions.
#pragma once
#include <stdint.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

// Copies key and value. On success librdkafka owns `headers`; on failure the caller still does.
static inline rd_kafka_resp_err_t crdkafka_produce(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition,
                                                   const void *key, size_t key_size, const void *value,
                                                   size_t value_size, rd_kafka_headers_t *headers, uintptr_t mark) {
  if (headers == NULL)
    return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
                             RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_OPAQUE((void *)mark),
                             RD_KAFKA_V_END);
  return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                           RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
                           RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_HEADERS(headers),
                           RD_KAFKA_V_OPAQUE((void *)mark), RD_KAFKA_V_END);
}
