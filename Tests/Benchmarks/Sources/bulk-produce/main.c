// Produces one record again and again, as fast as librdkafka alone can: the least that a record on Kafka costs.
//
//   bulk-produce BOOTSTRAP-SERVERS TOPIC COUNT
//
// The record is one that stands on the topic, with its key and its headers. Prints one JSON object; the CPU time of
// this process for each record in microseconds.
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static long undelivered;

static void fail(const char *what, const char *detail) {
  fprintf(stderr, "bulk-produce: %s: %s\n", what, detail);
  exit(1);
}

static void on_delivery(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
  (void)producer, (void)opaque;
  if (message->err) fail("a record was not acknowledged", rd_kafka_err2str(message->err));
  undelivered--;
}

static void set(rd_kafka_conf_t *configuration, const char *name, const char *value) {
  char error[256];
  if (rd_kafka_conf_set(configuration, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) fail(name, error);
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *configuration, const char *bootstrap) {
  char error[256];
  set(configuration, "bootstrap.servers", bootstrap);
  rd_kafka_t *client = rd_kafka_new(type, configuration, error, sizeof error);
  if (!client) fail("no client", error);
  return client;
}

// Any record of the topic. It belongs to the consumer, which lives until the process ends.
static rd_kafka_message_t *example(const char *bootstrap, const char *topic) {
  rd_kafka_conf_t *configuration = rd_kafka_conf_new();
  set(configuration, "group.id", "bulk-produce");
  set(configuration, "auto.offset.reset", "earliest");
  rd_kafka_t *consumer = client(RD_KAFKA_CONSUMER, configuration, bootstrap);
  rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
  rd_kafka_subscribe(consumer, topics);
  rd_kafka_topic_partition_list_destroy(topics);
  rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 30000);
  if (!message) fail(topic, "there is no record");
  if (message->err) fail(topic, rd_kafka_message_errstr(message));
  // The consumer fetches no more: what it costs is not to be measured.
  rd_kafka_unsubscribe(consumer);
  return message;
}

static double processor_time(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage", "bulk-produce BOOTSTRAP-SERVERS TOPIC COUNT");
  const char *bootstrap = argv[1], *topic = argv[2];
  long count = atol(argv[3]);
  rd_kafka_message_t *record = example(bootstrap, topic);
  rd_kafka_headers_t *headers = NULL;
  if (rd_kafka_message_headers(record, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) fail(topic, "a record without headers");

  rd_kafka_conf_t *configuration = rd_kafka_conf_new();
  set(configuration, "enable.idempotence", "true");
  rd_kafka_conf_set_dr_msg_cb(configuration, on_delivery);
  rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, configuration, bootstrap);

  double start = processor_time();
  for (undelivered = 0; count > 0;) {
    rd_kafka_headers_t *copy = rd_kafka_headers_copy(headers);
    rd_kafka_resp_err_t error = rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(record->key, record->key_len),
      RD_KAFKA_V_VALUE(record->payload, record->len), RD_KAFKA_V_HEADERS(copy), RD_KAFKA_V_END);
    if (error) {
      rd_kafka_headers_destroy(copy);
      if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) fail("a record was refused", rd_kafka_err2str(error));
      rd_kafka_poll(producer, 100);
      continue;
    }
    count--;
    undelivered++;
  }
  rd_kafka_flush(producer, 60000);
  if (undelivered) fail(topic, "not everything was acknowledged");
  printf("{\"records\": %ld, \"microseconds\": %.2f}\n", atol(argv[3]), (processor_time() - start) / atol(argv[3]));
  return 0;
}
