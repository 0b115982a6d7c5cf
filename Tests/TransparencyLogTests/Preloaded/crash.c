// Loaded into a program before its libraries (LD_PRELOAD): counts what the program does to the files of a folder, and kills
// it before one of those steps, or in the midst of it.
//
// CRASH_FOLDER is the folder, CRASH_STEP the number of the step (0: never), and CRASH_MODE what is left:
//   kill  everything that was written: the process ended, and the machine went on;
//   half  the same, and half of what the step would have written;
//   tear  the power failed: of files that were not synced, the first half is left;
//   lose  the power failed: files that were not synced are gone, and names that were not synced are what they were;
//   leave everything that was written, and what a program needs that comes after to lose names that were not synced.
// CRASH_FAILURE is the number of a step that fails (EIO) and changes nothing (0: none).
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
static long last, failing, steps;
static char dirty[MANY][PATH_MAX / 8];    // files whose bytes are not synced
static char renamed[MANY][PATH_MAX / 8];  // names that were not synced since they changed

__attribute__((constructor)) static void begin(void) {
  folder = getenv("CRASH_FOLDER");
  mode = getenv("CRASH_MODE");
  last = getenv("CRASH_STEP") ? atol(getenv("CRASH_STEP")) : 0;
  failing = getenv("CRASH_FAILURE") ? atol(getenv("CRASH_FAILURE")) : 0;
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
  if (strcmp(mode, "leave") == 0) kill(getpid(), SIGKILL);
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

// Takes over the names that a program before has changed and not synced (mode "leave").
__attribute__((constructor)) static void inherit(void) {
  char name[PATH_MAX / 8], log[PATH_MAX / 8];
  snprintf(log, sizeof log, "%s/log", folder ? folder : "");
  DIR *listing = folder ? opendir(log) : NULL;
  for (struct dirent *entry; listing && (entry = readdir(listing));) {
    char *end = strstr(entry->d_name, ".before");
    if (!end) continue;
    *end = 0;
    if (snprintf(name, sizeof name, "%s/%s", log, entry->d_name) >= (int)sizeof name) abort();
    add(renamed, name);
  }
  if (listing) closedir(listing);
}

// Whether the step is to be left out, because it fails; `half` makes half of it, before the program is killed.
static int fails(void (*half)(void)) {
  steps++;
  if (steps == failing) {
    errno = EIO;
    return 1;
  }
  if (steps != last) return 0;
  if (half && strcmp(mode, "half") == 0) half();
  crash();
  return 1;
}

// The whole path of a name in an open directory.
static const char *whole(int directory, const char *path, char *buffer) {
  char parent[PATH_MAX / 8];
  if (path[0] == '/' || directory == AT_FDCWD || !path_of(directory, parent)) return path;
  if (snprintf(buffer, PATH_MAX / 8, "%s/%s", parent, path) >= PATH_MAX / 8) abort();
  return buffer;
}

int openat(int directory, const char *name, int flags, ...) {
  static __typeof__(&openat) next;
  if (!next) next = NEXT(openat);
  va_list list;
  va_start(list, flags);
  mode_t permissions = flags & O_CREAT ? va_arg(list, mode_t) : 0;
  va_end(list);
  char buffer[PATH_MAX / 8];
  const char *path = whole(directory, name, buffer);
  if (!is_ours(path) || !(flags & O_CREAT)) return next(directory, name, flags, permissions);
  if (fails(NULL)) return -1;
  int file = next(directory, name, flags, permissions);
  if (file >= 0) add(dirty, path);
  return file;
}

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t permissions = flags & O_CREAT ? va_arg(list, mode_t) : 0;
  va_end(list);
  return openat(AT_FDCWD, path, flags, permissions);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int directory, const char *path, int flags, ...) __attribute__((alias("openat")));

static int half_file;
static const void *half_bytes;
static size_t half_count;
static void write_half(void) { NEXT(write)(half_file, half_bytes, half_count); }

ssize_t write(int file, const void *bytes, size_t count) {
  static __typeof__(&write) next;
  if (!next) next = NEXT(write);
  char path[PATH_MAX / 8];
  half_file = file, half_bytes = bytes, half_count = count / 2;
  if (path_of(file, path) && fails(write_half)) return -1;
  return next(file, bytes, count);
}

int fsync(int file) {
  char path[PATH_MAX / 8];
  struct stat status;
  // What a disk does now takes long, and here the power never really fails.
  if (!path_of(file, path)) return NEXT(fsync)(file);
  if (fails(NULL) || fstat(file, &status) != 0) return -1;
  if (S_ISDIR(status.st_mode)) keep_names();
  else take(dirty, path);
  return 0;
}

int syncfs(int file) {
  char path[PATH_MAX / 8];
  if (!path_of(file, path)) return NEXT(syncfs)(file);
  if (fails(NULL)) return -1;
  for (int place = 0; place < MANY && dirty[place][0]; place++) {
    dirty[place][0] = 1;
    dirty[place][1] = 0;
  }
  keep_names();
  return 0;
}

int renameat(int old_directory, const char *old, int new_directory, const char *new) {
  static __typeof__(&renameat) next;
  if (!next) next = NEXT(renameat);
  char name[PATH_MAX / 8], buffers[2][PATH_MAX / 8];
  const char *from = whole(old_directory, old, buffers[0]), *to = whole(new_directory, new, buffers[1]);
  if (!is_ours(to)) return next(old_directory, old, new_directory, new);
  if (fails(NULL)) return -1;
  saved(name, to);
  NEXT(unlink)(name);
  if (link(to, name) != 0 && errno != ENOENT) abort();
  int result = next(old_directory, old, new_directory, new);
  if (result == 0) {
    add(renamed, to);
    if (take(dirty, from)) add(dirty, to);
  }
  return result;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int mkdirat(int directory, const char *path, mode_t permissions) {
  char buffer[PATH_MAX / 8];
  if (is_ours(whole(directory, path, buffer)) && fails(NULL)) return -1;
  return NEXT(mkdirat)(directory, path, permissions);
}

int mkdir(const char *path, mode_t permissions) { return mkdirat(AT_FDCWD, path, permissions); }

int unlinkat(int directory, const char *path, int flags) {
  char buffer[PATH_MAX / 8];
  if (is_ours(whole(directory, path, buffer)) && fails(NULL)) return -1;
  return NEXT(unlinkat)(directory, path, flags);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
