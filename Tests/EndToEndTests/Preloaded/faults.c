// Loaded into a program before its libraries (LD_PRELOAD): sets its wall clock wrong, fills its disk, and keeps its answers.
//
// FAULTS names a file of 32 bytes, which the tests write and this reads at every call: by how many nanoseconds the wall
// clock is off, whether the disk is full, and the port whose answers are kept: who sends one goes no further, and is
// counted in the last place. FAULTS_FOLDER is the folder whose files can no longer grow on a full disk.
// What waits goes on waiting rightly: CLOCK_MONOTONIC and the C library's own calls are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
  _Atomic int64_t offset;
  _Atomic int64_t disk_is_full;
  _Atomic int64_t kept_port;
  _Atomic int64_t kept;
};

static struct faults none;
static struct faults *faults = &none;
static const char *folder;

__attribute__((constructor)) static void find_faults(void) {
  const char *path = getenv("FAULTS");
  folder = getenv("FAULTS_FOLDER");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *memory = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) faults = memory;
  close(file);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int clock_gettime(clockid_t clock, struct timespec *time) {
  static __typeof__(&clock_gettime) next;
  if (!next) next = NEXT(clock_gettime);
  int result = next(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t now = time->tv_sec * 1000000000LL + time->tv_nsec + faults->offset;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
  }
  return result;
}

int gettimeofday(struct timeval *restrict value, void *restrict zone) {
  (void)zone;
  struct timespec time;
  int result = clock_gettime(CLOCK_REALTIME, &time);
  if (result == 0) *value = (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
  return result;
}

time_t time(time_t *seconds) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  if (seconds) *seconds = time.tv_sec;
  return time.tv_sec;
}

// Whether `file` lies in the folder and the disk has no room for it to reach `end`.
static int has_no_room(int file, int64_t end) {
  if (!faults->disk_is_full || !folder) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  struct stat status;
  if (strncmp(path, folder, strlen(folder)) != 0 || fstat(file, &status) != 0 || end <= status.st_size) return 0;
  errno = ENOSPC;
  return 1;
}

ssize_t send(int socket, const void *bytes, size_t count, int flags) {
  static __typeof__(&send) next;
  if (!next) next = NEXT(send);
  struct sockaddr_in own;
  socklen_t length = sizeof own;
  if (faults->kept_port && getsockname(socket, (struct sockaddr *)&own, &length) == 0 && own.sin_family == AF_INET
      && ntohs(own.sin_port) == faults->kept_port) {
    faults->kept++;
    for (;;) pause();
  }
  return next(socket, bytes, count, flags);
}

ssize_t write(int file, const void *bytes, size_t count) {
  static __typeof__(&write) next;
  if (!next) next = NEXT(write);
  int64_t place = faults->disk_is_full ? lseek(file, 0, SEEK_CUR) : 0;
  return place >= 0 && has_no_room(file, place + (int64_t)count) ? -1 : next(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  static __typeof__(&pwrite) next;
  if (!next) next = NEXT(pwrite);
  return has_no_room(file, offset + (int64_t)count) ? -1 : next(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  static __typeof__(&pwrite64) next;
  if (!next) next = NEXT(pwrite64);
  return has_no_room(file, offset + (int64_t)count) ? -1 : next(file, bytes, count, offset);
}

int posix_fallocate(int file, off_t offset, off_t count) {
  static __typeof__(&posix_fallocate) next;
  if (!next) next = NEXT(posix_fallocate);
  return has_no_room(file, offset + count) ? ENOSPC : next(file, offset, count);
}

int fallocate(int file, int mode, off_t offset, off_t count) {
  static __typeof__(&fallocate) next;
  if (!next) next = NEXT(fallocate);
  return has_no_room(file, offset + count) ? -1 : next(file, mode, offset, count);
}
