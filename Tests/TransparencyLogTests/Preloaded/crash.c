// Loaded into a program before its libraries (LD_PRELOAD): counts what the program does to the files of a folder, and kills
// it before one of those steps, or in the midst of it.
//
// CRASH_FOLDER is the folder, CRASH_STEP the number of the step (0: never), and CRASH_MODE what is left:
//   kill  everything that was written: the process ended, and the machine went on;
//   half  the same, and half of what the step would have written;
//   tear  the power failed: of files that were not synced, the first half is left;
//   lose  the power failed: files that were not synced are gone, and names that were not synced are what they were.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MANY 4096

static const char *folder, *mode;
static long last, steps;
static char dirty[MANY][PATH_MAX / 8];    // files whose bytes are not synced
static char renamed[MANY][PATH_MAX / 8];  // names that were not synced since they changed

__attribute__((constructor)) static void begin(void) {
  folder = getenv("CRASH_FOLDER");
  mode = getenv("CRASH_MODE");
  last = getenv("CRASH_STEP") ? atol(getenv("CRASH_STEP")) : 0;
}

static int is_ours(const char *path) { return folder && strncmp(path, folder, strlen(folder)) == 0; }

static int path_of(int file, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX / 8 - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_ours(path);
}

static void add(char list[MANY][PATH_MAX / 8], const char *path) {
  int place = 0;
  while (place < MANY - 1 && list[place][0] && strcmp(list[place], path) != 0) place++;
  snprintf(list[place], PATH_MAX / 8, "%s", path);
}

static int take(char list[MANY][PATH_MAX / 8], const char *path) {
  for (int place = 0; place < MANY; place++) {
    if (strcmp(list[place], path) != 0) continue;
    list[place][0] = 1;  // taken, with others behind it
    list[place][1] = 0;
    return 1;
  }
  return 0;
}

static void saved(char *name, const char *path) { snprintf(name, PATH_MAX / 8, "%s.before", path); }

// The names in the folder itself, and all that were saved of them, are as they are.
static void keep_names(void) {
  char name[PATH_MAX / 8];
  for (int place = 0; place < MANY && renamed[place][0]; place++) {
    saved(name, renamed[place]);
    NEXT(unlink)(name);
    renamed[place][0] = 1;
    renamed[place][1] = 0;
  }
}

static void crash(void) {
  char name[PATH_MAX / 8];
  struct stat status;
  for (int place = 0; place < MANY && dirty[place][0] && (strcmp(mode, "tear") == 0 || strcmp(mode, "lose") == 0); place++) {
    if (stat(dirty[place], &status) != 0) continue;
    if (mode[0] == 'l') NEXT(unlink)(dirty[place]);
    else if (truncate(dirty[place], status.st_size / 2) != 0) abort();
  }
  for (int place = 0; place < MANY && renamed[place][0] && strcmp(mode, "lose") == 0; place++) {
    if (renamed[place][0] == 1) continue;
    saved(name, renamed[place]);
    if (NEXT(rename)(name, renamed[place]) != 0) NEXT(unlink)(renamed[place]);
  }
  keep_names();
  kill(getpid(), SIGKILL);
}

// Whether the step is not to be made whole.
static int step(void) {
  steps++;
  if (steps != last) return 0;
  if (strcmp(mode, "half") == 0) return 1;
  crash();
  return 1;
}

static int open_file(const char *path, int flags, mode_t permissions) {
  static __typeof__(&open) next;
  if (!next) next = NEXT(open);
  if (!is_ours(path) || !(flags & O_CREAT)) return next(path, flags, permissions);
  if (step()) crash();
  int file = next(path, flags, permissions);
  if (file >= 0) add(dirty, path);
  return file;
}

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t permissions = flags & O_CREAT ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_file(path, flags, permissions);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

ssize_t write(int file, const void *bytes, size_t count) {
  static __typeof__(&write) next;
  if (!next) next = NEXT(write);
  char path[PATH_MAX / 8];
  if (path_of(file, path) && step()) {
    next(file, bytes, count / 2);
    crash();
  }
  return next(file, bytes, count);
}

int fsync(int file) {
  char path[PATH_MAX / 8];
  struct stat status;
  int ours = path_of(file, path);
  if (ours && step()) crash();
  // What a disk does now takes long, and here the power never really fails.
  if (!ours) return NEXT(fsync)(file);
  if (fstat(file, &status) != 0) return -1;
  if (S_ISDIR(status.st_mode)) keep_names();
  else take(dirty, path);
  return 0;
}

int syncfs(int file) {
  char path[PATH_MAX / 8];
  int ours = path_of(file, path);
  if (ours && step()) crash();
  if (!ours) return NEXT(syncfs)(file);
  for (int place = 0; place < MANY && dirty[place][0]; place++) {
    dirty[place][0] = 1;
    dirty[place][1] = 0;
  }
  keep_names();
  return 0;
}

int rename(const char *from, const char *to) {
  static __typeof__(&rename) next;
  if (!next) next = NEXT(rename);
  if (!is_ours(to)) return next(from, to);
  if (step()) crash();
  char name[PATH_MAX / 8];
  saved(name, to);
  unlink(name);
  if (link(to, name) != 0 && errno != ENOENT) abort();
  int result = next(from, to);
  if (result == 0) {
    add(renamed, to);
    if (take(dirty, from)) add(dirty, to);
  }
  return result;
}

int mkdir(const char *path, mode_t permissions) {
  if (is_ours(path) && step()) crash();
  return NEXT(mkdir)(path, permissions);
}

int unlink(const char *path) {
  if (is_ours(path) && !strstr(path, ".before") && step()) crash();
  return NEXT(unlink)(path);
}

int rmdir(const char *path) {
  if (is_ours(path) && step()) crash();
  return NEXT(rmdir)(path);
}
