// Posts notifications as Apple does: what was not answered 200 is sent again.
//
//   persistent-sender PORT BODIES USERS EVENTS CONNECTIONS RATE DOUBTS SEED
//
// BODIES is a file with one body a line: the EVENTS of the first user in their order, then those of the second, and so
// on. A user's next event is sent once the one before it was answered 200. Many users are under way at once, over
// CONNECTIONS kept-alive TLS connections, at RATE new requests a second; what a fault held up is caught up at one and a
// half times the rate. Of a million requests, DOUBTS are sent again although they may have been answered: the
// connection of every second one is cut while its answer is under way, the answer to every other one is ignored.
//
// Prints a JSON object each second and one at the end. Ends when all is answered 200, or, after SIGTERM, when what was
// begun is: nothing is ever in doubt then. The last object says how many events of each user were acknowledged.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND 1000000LL
#define SECOND 1000000000LL
// Longer than the ingress lets any request take.
#define PATIENCE (40 * SECOND)
#define BURST 20

enum state { CLOSED, SHAKING_HANDS, IDLE, BUSY };
enum doubt { NONE, CUT, IGNORED };

struct connection {
  enum state state;
  SSL *ssl;
  int user;
  enum doubt doubt;
  int64_t sent, deadline;  // closed: when to connect again; else: when to give up
  char answer[4096];
  int length;
};

struct user {
  int acknowledged;
  uint8_t refusals;   // in a row
  bool begun;         // the event may have reached the receiver
  bool repeated;      // the event was answered 200 already
};

struct later {
  int64_t due;
  int user;
};

static int port, user_count, event_count, connection_count, doubts;
static const char *bodies;
static size_t *lines;
static struct user *users;
static struct connection *connections;
static SSL_CTX *context;
static int events, open_count;

// Users whose next event may be sent: a ring. Users that have to wait: a heap.
static int *ready, ready_start, ready_count;
static struct later *heap;
static int heap_count;

static size_t requests, acknowledged, cuts, ignored, broken, late, answers[600], answer_times[60001];
static volatile sig_atomic_t told_to_end;

static void fail(const char *what) {
  fprintf(stderr, "persistent-sender: %s\n", what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

static uint64_t random_state;
static uint64_t draw(uint64_t bound) {  // SplitMix64
  uint64_t mixed = random_state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return (mixed ^ mixed >> 31) % bound;
}

static void read_bodies(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) fail("the bodies cannot be read");
  bodies = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
  if (bodies == MAP_FAILED) fail("the bodies cannot be mapped");
  close(file);
  size_t count = (size_t)user_count * event_count;
  lines = malloc((count + 1) * sizeof *lines);
  const char *place = bodies, *end = bodies + status.st_size;
  for (size_t line = 0; line < count; line++) {
    lines[line] = place - bodies;
    const char *newline = place < end ? memchr(place, '\n', end - place) : NULL;
    if (!newline) fail("there are too few bodies");
    place = newline + 1;
  }
  lines[count] = place - bodies;
}

static void push_back(int user) { ready[(ready_start + ready_count++) % user_count] = user; }

static void push_front(int user) {
  ready_start = (ready_start + user_count - 1) % user_count;
  ready[ready_start] = user;
  ready_count++;
}

static int pop_front(void) {
  int user = ready[ready_start];
  ready_start = (ready_start + 1) % user_count;
  ready_count--;
  return user;
}

static void send_later(int user, int64_t due) {
  int place = heap_count++;
  for (; place > 0 && heap[(place - 1) / 2].due > due; place = (place - 1) / 2) heap[place] = heap[(place - 1) / 2];
  heap[place] = (struct later){due, user};
}

static int pop_due(void) {
  int user = heap[0].user, place = 0;
  struct later last = heap[--heap_count];
  for (int child; (child = 2 * place + 1) < heap_count; place = child) {
    if (child + 1 < heap_count && heap[child + 1].due < heap[child].due) child++;
    if (heap[child].due >= last.due) break;
    heap[place] = heap[child];
  }
  heap[place] = last;
  return user;
}

// The answer will not be known: the event is sent again, some of them at once, as long as the first may be under way.
static void unanswered(int user) { send_later(user, now() + draw(100) * MILLISECOND); }

static void acknowledge(int user) {
  if (!users[user].repeated) acknowledged++;
  users[user].acknowledged++;
  users[user].refusals = 0;
  users[user].begun = users[user].repeated = false;
  if (users[user].acknowledged == event_count) return;
  // Half the time the user's next event follows at once: order is at stake only where events come close together.
  if (draw(2)) push_front(user);
  else push_back(user);
}

static void refused(int user) {
  int shift = users[user].refusals < 4 ? users[user].refusals++ : 4;
  int64_t pause = 250 * MILLISECOND << shift;
  send_later(user, now() + pause / 2 + draw(pause));
}

static void close_connection(struct connection *connection, int64_t pause) {
  if (connection->state == BUSY) unanswered(connection->user);
  close(SSL_get_fd(connection->ssl));
  SSL_free(connection->ssl);
  connection->state = CLOSED;
  connection->deadline = now() + pause;
  open_count--;
}

static void receive(struct connection *connection);

static void connect_again(struct connection *connection) {
  int on = 1, number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (connect(number, (struct sockaddr *)&address, sizeof address) != 0) {
    close(number);
    connection->deadline = now() + (50 + draw(100)) * MILLISECOND;
    return;
  }
  fcntl(number, F_SETFL, O_NONBLOCK);
  setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connection->ssl = SSL_new(context);
  SSL_set_fd(connection->ssl, number);
  SSL_set_connect_state(connection->ssl);
  connection->state = SHAKING_HANDS;
  connection->length = 0;
  connection->deadline = now() + PATIENCE;
  open_count++;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
  epoll_ctl(events, EPOLL_CTL_ADD, number, &event);
  receive(connection);
}

static void send_next(struct connection *connection, int user) {
  size_t line = (size_t)user * event_count + users[user].acknowledged;
  size_t length = lines[line + 1] - lines[line] - 1;
  char request[20000];
  int head = snprintf(request, 512,
    "POST /apple/notifications HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "User-Agent: persistent-sender\r\nContent-Length: %zu\r\n\r\n", length);
  if (head + length > sizeof request) fail("a body is too large");
  memcpy(request + head, bodies + lines[line], length);
  ERR_clear_error();
  connection->user = user;
  connection->state = BUSY;
  users[user].begun = true;
  requests++;
  if (SSL_write(connection->ssl, request, head + length) <= 0) {
    // Nothing was under way on it: that it has no room means that it is broken.
    broken++;
    close_connection(connection, 0);
    return;
  }
  connection->sent = now();
  connection->deadline = connection->sent + PATIENCE;
  connection->doubt = draw(1000000) >= (uint64_t)doubts ? NONE : draw(2) ? CUT : IGNORED;
  if (connection->doubt == CUT) connection->deadline = connection->sent + draw(30) * MILLISECOND;
}

static void answered(struct connection *connection) {
  int status = atoi(connection->answer + 9), user = connection->user;
  answers[status > 0 && status < 600 ? status : 0]++;
  int64_t time = (now() - connection->sent) / MILLISECOND;
  answer_times[time < 60000 ? time : 60000]++;
  connection->state = IDLE;
  connection->length = 0;
  if (status != 200) {
    refused(user);
  } else if (connection->doubt == IGNORED && !users[user].repeated) {
    ignored++;
    acknowledged++;
    users[user].repeated = true;
    unanswered(user);
  } else {
    acknowledge(user);
  }
}

// Reads what has come. An answer ends with its last byte, or the connection does.
static void receive(struct connection *connection) {
  ERR_clear_error();
  if (connection->state == SHAKING_HANDS) {
    int result = SSL_do_handshake(connection->ssl);
    if (result == 1) {
      connection->state = IDLE;
    } else if (SSL_get_error(connection->ssl, result) != SSL_ERROR_WANT_READ) {
      broken++;
      close_connection(connection, 100 * MILLISECOND);
    }
    return;
  }
  for (;;) {
    int room = (int)sizeof connection->answer - 1 - connection->length;
    int count = room > 0 ? SSL_read(connection->ssl, connection->answer + connection->length, room) : -1;
    if (count <= 0) {
      if (room > 0 && SSL_get_error(connection->ssl, count) == SSL_ERROR_WANT_READ) return;
      broken += connection->state == BUSY;
      close_connection(connection, 0);
      return;
    }
    connection->length += count;
    connection->answer[connection->length] = 0;
    char *end = strstr(connection->answer, "\r\n\r\n");
    if (!end) continue;
    char *field = strcasestr(connection->answer, "\r\ncontent-length:");
    long body = field && field < end ? strtol(field + 17, NULL, 10) : 0;
    if (connection->length < end + 4 - connection->answer + body) continue;
    if (connection->state == BUSY) answered(connection);
  }
}

static void pass_deadline(struct connection *connection) {
  if (connection->state == CLOSED) return connect_again(connection);
  if (connection->state == BUSY && connection->doubt == CUT) cuts++;
  else late++;
  close_connection(connection, 0);
}

static size_t percentile(size_t percent) {
  size_t total = 0, sum = 0;
  for (int time = 0; time <= 60000; time++) total += answer_times[time];
  for (int time = 0; time <= 60000; time++) {
    sum += answer_times[time];
    if (sum * 100 >= total * percent) return time;
  }
  return 0;
}

static void report(double seconds, bool is_last) {
  printf("{\"seconds\":%.2f,\"requests\":%zu,\"acknowledged\":%zu,\"cut\":%zu,\"ignored\":%zu,\"broken\":%zu,\"late\":%zu,"
    "\"waiting\":%d,\"connections\":%d,\"p50\":%zu,\"p99\":%zu,\"slowest\":%zu,\"answers\":{",
    seconds, requests, acknowledged, cuts, ignored, broken, late, heap_count, open_count, percentile(50),
    percentile(99), percentile(100));
  const char *comma = "";
  for (int status = 0; status < 600; status++) {
    if (!answers[status]) continue;
    printf("%s\"%d\":%zu", comma, status, answers[status]);
    comma = ",";
  }
  printf("}");
  if (is_last) {
    printf(",\"users\":[");
    for (int user = 0; user < user_count; user++) printf(user ? ",%d" : "%d", users[user].acknowledged);
    printf("]");
  }
  printf("}\n");
  fflush(stdout);
}

static void end_soon(int number) { told_to_end = 1; (void)number; }

// The next user whose turn it is; -1 if there is none. Once told to end, only what was begun goes on.
static int next_user(int64_t time) {
  while (heap_count > 0 && heap[0].due <= time) push_front(pop_due());
  while (ready_count > 0) {
    int user = pop_front();
    if (!told_to_end || users[user].begun) return user;
  }
  return -1;
}

static bool is_any_begun(void) {
  for (int place = 0; place < ready_count; place++) {
    if (users[ready[(ready_start + place) % user_count]].begun) return true;
  }
  return false;
}

int main(int argc, char **argv) {
  if (argc != 9) fail("usage: persistent-sender PORT BODIES USERS EVENTS CONNECTIONS RATE DOUBTS SEED");
  port = atoi(argv[1]), user_count = atoi(argv[3]), event_count = atoi(argv[4]), connection_count = atoi(argv[5]);
  double rate = atof(argv[6]);
  doubts = atoi(argv[7]);
  random_state = strtoull(argv[8], NULL, 10);
  if (user_count < 1 || event_count < 1 || connection_count < 1 || rate <= 0) fail("nothing to do");
  read_bodies(argv[2]);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, end_soon);
  prctl(PR_SET_TIMERSLACK, 1);

  users = calloc(user_count, sizeof *users);
  ready = malloc(user_count * sizeof *ready);
  heap = malloc((user_count + 1) * sizeof *heap);
  for (int user = 0; user < user_count; user++) push_back(user);
  for (int left = user_count; left > 1; left--) {  // shuffled
    int other = draw(left), kept = ready[left - 1];
    ready[left - 1] = ready[other];
    ready[other] = kept;
  }
  context = SSL_CTX_new(TLS_client_method());
  events = epoll_create1(EPOLL_CLOEXEC);
  connections = calloc(connection_count, sizeof *connections);

  int64_t start = now(), due = start, earliest = start, next_report = start + SECOND;
  int64_t interval = (int64_t)(SECOND / rate), shortest = interval * 2 / 3;
  for (;;) {
    int64_t time = now();
    bool is_busy = false;
    for (int index = 0; index < connection_count; index++) {
      struct connection *connection = &connections[index];
      if (connection->deadline <= time && connection->state != IDLE) pass_deadline(connection);
      if (connection->state == IDLE && due <= time && earliest <= time) {
        int user = next_user(time);
        if (user >= 0) {
          send_next(connection, user);
          due += interval;
          // The loop does not turn for each request: those that it missed follow together.
          earliest = time - earliest > BURST * shortest ? time - BURST * shortest : earliest + shortest;
        }
      }
      is_busy |= connection->state == BUSY;
    }
    if (time >= next_report) {
      report((time - start) / 1e9, false);
      next_report += SECOND;
    }
    if (!is_busy && heap_count == 0 && (ready_count == 0 || (told_to_end && !is_any_begun()))) break;
    struct timespec timeout = {.tv_nsec = MILLISECOND};
    struct epoll_event happened[64];
    int count = epoll_pwait2(events, happened, 64, &timeout, NULL);
    for (int index = 0; index < count; index++) {
      struct connection *connection = happened[index].data.ptr;
      if (connection->state != CLOSED) receive(connection);
    }
  }
  report((now() - start) / 1e9, true);
  return 0;
}
