// Loaded before the C library (LD_PRELOAD): delays system calls at random, as a busy machine does. It changes no result.
// Where SLOW_START is set, the program also starts late.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint64_t next(void) {
  static __thread uint64_t state;
  if (state == 0) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    state = ((uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15 ^ (uint64_t)(uintptr_t)&state ^ (uint64_t)getpid() << 32) | 1;
  }
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

// In milliseconds.
static void wait_between(uint64_t least, uint64_t most) {
  int before = errno;
  uint64_t time = least * 1000 + next() % ((most - least) * 1000 + 1);
  struct timespec left = {time / 1000000, time % 1000000 * 1000};
  while (nanosleep(&left, &left) == -1 && errno == EINTR) {
  }
  errno = before;
}

// Once in so many calls, for so many milliseconds at most.
static void dawdle(unsigned calls, uint64_t most) {
  if (next() % calls == 0) wait_between(0, most);
}

// A turn of a loop, or of a thread that was woken: seldom for long.
static void turn(unsigned calls) {
  uint64_t chance = next() % calls;
  if (chance < 20) wait_between(0, 100);
  if (chance == 20) wait_between(200, 1500);
}

static void disk(void) {
  uint64_t chance = next() % 1000;
  if (chance < 600) return wait_between(0, 10);
  if (chance < 960) return wait_between(10, 100);
  if (chance < 996) return wait_between(100, 600);
  wait_between(1000, 3000);
}

__attribute__((constructor)) static void start(void) {
  if (!getenv("SLOW_START")) return;
  uint64_t chance = next() % 20;
  if (chance < 10) wait_between(0, 300);
  if (chance == 10) wait_between(1000, 4000);
}

#define SLOW(type, name, parameters, arguments, before, after) \
  type name parameters {                                       \
    static type(*real) parameters;                             \
    if (!real) real = dlsym(RTLD_NEXT, #name);                 \
    before;                                                    \
    type result = real arguments;                              \
    after;                                                     \
    return result;                                             \
  }
#define NOTHING (void)0

SLOW(int, fsync, (int file), (file), disk(), NOTHING)
SLOW(int, fdatasync, (int file), (file), disk(), NOTHING)
SLOW(int, rename, (const char *old, const char *new), (old, new), dawdle(4, 50), dawdle(4, 50))
SLOW(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), dawdle(4, 50),
  dawdle(4, 50))
SLOW(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), dawdle(4, 50), NOTHING)
SLOW(int, syncfs, (int file), (file), disk(), NOTHING)
SLOW(int, link, (const char *old, const char *new), (old, new), dawdle(4, 50), NOTHING)
SLOW(int, unlink, (const char *path), (path), dawdle(4, 50), NOTHING)
SLOW(int, close, (int file), (file), dawdle(200, 50), NOTHING)
SLOW(ssize_t, read, (int file, void *bytes, size_t count), (file, bytes, count), dawdle(200, 60), NOTHING)
SLOW(ssize_t, write, (int file, const void *bytes, size_t count), (file, bytes, count), dawdle(60, 60), dawdle(60, 60))
SLOW(ssize_t, pread, (int file, void *bytes, size_t count, off_t offset), (file, bytes, count, offset), dawdle(300, 30),
  NOTHING)
SLOW(ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t offset), (file, bytes, count, offset),
  dawdle(100, 30), NOTHING)
SLOW(ssize_t, pread64, (int file, void *bytes, size_t count, off64_t offset), (file, bytes, count, offset),
  dawdle(300, 30), NOTHING)
SLOW(ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t offset), (file, bytes, count, offset),
  dawdle(100, 30), NOTHING)
SLOW(ssize_t, recv, (int file, void *bytes, size_t count, int flags), (file, bytes, count, flags), dawdle(200, 50), NOTHING)
SLOW(ssize_t, send, (int file, const void *bytes, size_t count, int flags), (file, bytes, count, flags), dawdle(200, 50),
  NOTHING)
SLOW(ssize_t, recvmsg, (int file, struct msghdr *message, int flags), (file, message, flags), dawdle(300, 100), NOTHING)
SLOW(ssize_t, sendmsg, (int file, const struct msghdr *message, int flags), (file, message, flags), dawdle(300, 100),
  NOTHING)
SLOW(int, connect, (int file, const struct sockaddr *address, socklen_t size), (file, address, size), dawdle(20, 100),
  NOTHING)
SLOW(int, accept4, (int file, struct sockaddr *address, socklen_t *size, int flags), (file, address, size, flags),
  dawdle(20, 100), NOTHING)
SLOW(int, poll, (struct pollfd *files, nfds_t count, int time), (files, count, time), NOTHING, dawdle(500, 100))
SLOW(int, epoll_wait, (int file, struct epoll_event *events, int count, int time), (file, events, count, time), NOTHING,
  turn(2000))
SLOW(int, sem_wait, (sem_t *semaphore), (semaphore), NOTHING, turn(1000))
SLOW(int, posix_spawnp,
  (pid_t *process, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
    char *const arguments[], char *const environment[]),
  (process, file, actions, attributes, arguments, environment), dawdle(4, 100), dawdle(4, 100))

// The caller passes a mode only with O_CREAT or O_TMPFILE.
#define SLOW_OPEN(name, parameters, arguments)           \
  int name parameters {                                  \
    static int (*real) parameters;                       \
    if (!real) real = dlsym(RTLD_NEXT, #name);           \
    mode_t mode = 0;                                     \
    if (flags & (O_CREAT | __O_TMPFILE)) {               \
      va_list list;                                      \
      va_start(list, flags);                             \
      mode = va_arg(list, mode_t);                       \
      va_end(list);                                      \
    }                                                    \
    dawdle(20, 50);                                      \
    int result = real arguments;                         \
    dawdle(40, 50);                                      \
    return result;                                       \
  }

SLOW_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
SLOW_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
SLOW_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
