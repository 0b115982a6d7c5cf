// Posts notifications over TLS connections that are kept alive, and says how long the answers took.
//
//   load PORT BODIES CONNECTIONS SECONDS RATE [HEAD]
//
// BODIES is a file with one body a line; they are sent in turn, or with 0 SECONDS each once. RATE is requests a second over
// all connections, each timed from the moment at which it was due, so that a slow answer is not hidden by those that it
// holds up. A RATE of 0 is the closed loop: each connection sends as soon as it has its answer. HEAD is a file with the
// request line and fields beside Host and Content-Length, each with its CRLF, in place of those of a notification. Prints one
// JSON object; times in microseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>

struct request {
  char *bytes;
  int length;
};

struct connection {
  SSL *ssl;
  int64_t due;
  char answer[4096];
  int length;
};

static struct request *requests;
static size_t request_count, requests_sent;
static uint32_t *latencies;
static size_t latency_count, latency_capacity;
static size_t answers[600];

static void fail(const char *what) {
  fprintf(stderr, "load: %s\n", what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static const char *notification_head =
  "POST /apple/notifications HTTP/1.1\r\nContent-Type: application/json\r\nUser-Agent: load\r\n";

static const char *read_head(const char *path) {
  FILE *file = fopen(path, "r");
  char *head = NULL;
  size_t capacity = 0;
  if (!file || getdelim(&head, &capacity, 0, file) <= 0) fail("the head cannot be read");
  fclose(file);
  return head;
}

static void read_requests(const char *path, const char *head) {
  FILE *file = fopen(path, "r");
  if (!file) fail("the bodies cannot be read");
  char *line = NULL;
  size_t capacity = 0, room = 0;
  ssize_t length;
  while ((length = getline(&line, &capacity, file)) > 0) {
    if (line[length - 1] == '\n') line[--length] = 0;
    if (request_count == room) requests = realloc(requests, (room = room * 2 + 1024) * sizeof *requests);
    struct request *request = &requests[request_count++];
    request->length = asprintf(&request->bytes, "%sHost: localhost\r\nContent-Length: %zd\r\n\r\n%s", head, length, line);
  }
  fclose(file);
  free(line);
  if (!request_count) fail("there are no bodies");
}

static struct connection *connect_to(int port, SSL_CTX *context) {
  int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (connect(socket_, (struct sockaddr *)&address, sizeof address) != 0) fail(strerror(errno));
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct connection *connection = calloc(1, sizeof *connection);
  connection->ssl = SSL_new(context);
  SSL_set_fd(connection->ssl, socket_);
  if (SSL_connect(connection->ssl) != 1) fail("no TLS");
  int flags = 1;
  if (ioctl(socket_, FIONBIO, &flags) != 0) fail(strerror(errno));
  return connection;
}

static void send_next(struct connection *connection, int64_t due) {
  struct request *request = &requests[requests_sent++ % request_count];
  connection->due = due;
  int count;
  while ((count = SSL_write(connection->ssl, request->bytes, request->length)) <= 0) {
    if (SSL_get_error(connection->ssl, count) != SSL_ERROR_WANT_WRITE) fail("the server ended the connection");
    struct pollfd room = {.fd = SSL_get_fd(connection->ssl), .events = POLLOUT};
    poll(&room, 1, -1);
  }
}

static void note_latency(int64_t nanoseconds) {
  if (latency_count == latency_capacity) {
    latencies = realloc(latencies, (latency_capacity = latency_capacity * 2 + 65536) * sizeof *latencies);
  }
  latencies[latency_count++] = (uint32_t)(nanoseconds / 1000);
}

// Reads what has come. Returns whether the answer is complete, which is then counted.
static bool receive(struct connection *connection) {
  for (;;) {
    int room = (int)sizeof connection->answer - 1 - connection->length;
    int count = SSL_read(connection->ssl, connection->answer + connection->length, room);
    if (count <= 0) {
      if (SSL_get_error(connection->ssl, count) == SSL_ERROR_WANT_READ) return false;
      fail("the server ended the connection");
    }
    connection->length += count;
    connection->answer[connection->length] = 0;
    char *end = strstr(connection->answer, "\r\n\r\n");
    if (!end) continue;
    char *field = strcasestr(connection->answer, "\r\ncontent-length:");
    long body = field && field < end ? strtol(field + 17, NULL, 10) : 0;
    if (connection->length < end + 4 - connection->answer + body) continue;
    int status = atoi(connection->answer + 9);
    answers[status > 0 && status < 600 ? status : 0]++;
    connection->length = 0;
    note_latency(now() - connection->due);
    return true;
  }
}

static int ascending(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return a < b ? -1 : a > b;
}

static void report(double seconds) {
  qsort(latencies, latency_count, sizeof *latencies, ascending);
  printf("{\"requests\": %zu, \"seconds\": %.3f, \"answers\": {", latency_count, seconds);
  const char *comma = "";
  for (int status = 0; status < 600; status++) {
    if (!answers[status]) continue;
    printf("%s\"%d\": %zu", comma, status, answers[status]);
    comma = ", ";
  }
  printf("}, \"p50\": %u, \"p99\": %u, \"max\": %u}\n", latencies[latency_count / 2],
    latencies[latency_count * 99 / 100], latencies[latency_count - 1]);
}

int main(int argc, char **argv) {
  if (argc != 6 && argc != 7) fail("usage: load PORT BODIES CONNECTIONS SECONDS RATE [HEAD]");
  int port = atoi(argv[1]), connections = atoi(argv[3]);
  double seconds = atof(argv[4]), rate = atof(argv[5]);
  read_requests(argv[2], argc == 7 ? read_head(argv[6]) : notification_head);
  bool once = seconds == 0;
  if (once && request_count < (size_t)connections) fail("there are fewer bodies than connections");
  prctl(PR_SET_TIMERSLACK, 1);
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  int events = epoll_create1(EPOLL_CLOEXEC);
  struct connection *idle[connections];
  int idle_count = 0;
  for (; idle_count < connections; idle_count++) {
    struct connection *connection = idle[idle_count] = connect_to(port, context);
    // A first request at once, which does not count: a server under attack may close whoever has said nothing yet.
    send_next(connection, now());
    while (!receive(connection)) {
      struct pollfd answer = {.fd = SSL_get_fd(connection->ssl), .events = POLLIN};
      poll(&answer, 1, -1);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(events, EPOLL_CTL_ADD, SSL_get_fd(connection->ssl), &event);
  }

  latency_count = 0;
  memset(answers, 0, sizeof answers);
  int64_t start = now(), end = once ? INT64_MAX : start + (int64_t)(seconds * 1e9), time = start;
  int64_t interval = rate > 0 ? (int64_t)(1e9 / rate) : 0, due = start;
  for (;;) {
    bool goes_on = time < end && !(once && requests_sent == request_count);
    if (!goes_on && idle_count == connections) break;
    while (idle_count > 0 && time < end && !(once && requests_sent == request_count) && due <= time) {
      send_next(idle[--idle_count], interval ? due : now());
      due += interval;
    }
    int64_t wait = interval && idle_count > 0 && due > time ? due - time : 1000000000;
    struct timespec timeout = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
    struct epoll_event ready[64];
    int count = epoll_pwait2(events, ready, 64, &timeout, NULL);
    for (int index = 0; index < count; index++) {
      struct connection *connection = ready[index].data.ptr;
      if (receive(connection)) idle[idle_count++] = connection;
    }
    time = now();
  }
  if (!latency_count) fail("nothing was answered");
  report((now() - start) / 1e9);
  return 0;
}
