// What Glibc's overlay does not carry: GNU extensions, macros and variadic calls.
#pragma once
// The structs of the C library are Glibc's own for Swift: without this, which module they belong to depends on the order
// in which a file's imports are loaded, and with it what the file has to import.
#pragma clang module import SwiftGlibc
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

// accept4(2) is a GNU extension: hidden from Swift, which includes the header without _GNU_SOURCE.
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
static inline int clinux_accept(int fd, struct sockaddr_storage *address) {
  socklen_t length = sizeof *address;
  return accept4(fd, (struct sockaddr *)address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// preadv2(2) is one too. With RWF_NOWAIT it takes nothing from the disk: where the system has no such bytes in its memory,
// it says EAGAIN, and EOPNOTSUPP where the file's system cannot tell. Linux 5.9 and 5.10 may say 0 before the end of a file
// (preadv2(2), "Bugs"), which would be read as one: that is EAGAIN here, too.
#include <sys/uio.h>
extern ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags);
static inline ssize_t clinux_read_from_memory(int fd, void *bytes, size_t count, off_t offset) {
  struct iovec part = {bytes, count};
  ssize_t result = preadv2(fd, &part, 1, offset, 0x8 /* RWF_NOWAIT */);
  if (result == 0 && count > 0) {
    errno = EAGAIN;
    return -1;
  }
  return result;
}

// syncfs(2) is one too.
extern int syncfs(int fd);
static inline int clinux_sync_file_system(int fd) { return syncfs(fd); }

// Glibc's overlay has the header of fstatfs(2) not. The kind of a file system: NFS_SUPER_MAGIC and the like.
#include <sys/vfs.h>
static inline int clinux_file_system_kind(int fd, uint32_t *kind) {
  struct statfs status;
  if (fstatfs(fd, &status) != 0) return -1;
  *kind = (uint32_t)status.f_type;
  return 0;
}

#include <linux/filter.h>

// Lets the socket, and those that it accepts, see no SYN any more: a peer sends it again after a second. A filter sees
// a packet from TCP's header on (socket(7), SO_ATTACH_FILTER).
static inline int clinux_ignore_syn(int fd) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),           // the flags
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),        // SYN and ACK
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),  // SYN alone?
    BPF_STMT(BPF_RET | BPF_K, 0),
    BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

extern void *memmem(const void *haystack, size_t haystacklen, const void *needle, size_t needlelen);
static inline const void *clinux_find(const void *bytes, size_t count, const void *pattern, size_t length) {
  return memmem(bytes, count, pattern, length);
}

static inline int clinux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int clinux_epoll_control(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event = {.events = events, .data = {.u64 = data}};
  return epoll_ctl(epoll, operation, fd, &event);
}

static inline uint64_t clinux_event_data(const struct epoll_event *event) { return event->data.u64; }
static inline uint32_t clinux_event_mask(const struct epoll_event *event) { return event->events; }

static inline int clinux_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
static inline int clinux_signalfd(const sigset_t *set) { return signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC); }

static inline uint64_t clinux_current_thread(void) { return (uint64_t)pthread_self(); }

extern int pthread_setname_np(pthread_t thread, const char *name);
static inline void clinux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

// The strerror_r of POSIX, under the name that glibc gives it beside its own.
extern int __xpg_strerror_r(int code, char *buffer, size_t length);
static inline int clinux_strerror(int code, char *buffer, size_t length) {
  return __xpg_strerror_r(code, buffer, length);
}

#include <spawn.h>

extern int pipe2(int ends[2], int flags);
// Both ends of a pipe that no other program inherits, with room for `size` bytes where the system has so much: a user's
// pipes have a limit together (pipe(7), pipe-user-pages-soft), beyond which each has a page or two.
static inline int clinux_pipe(int ends[2], int size) {
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[1], 1031 /* F_SETPIPE_SZ */, size);
  return 0;
}

extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
static inline int clinux_spawn_close_from(posix_spawn_file_actions_t *actions, int from) {
  return posix_spawn_file_actions_addclosefrom_np(actions, from);
}
