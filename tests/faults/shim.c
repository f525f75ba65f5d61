/* A library to preload: it numbers the calls by which the processes of a launch change files below a folder, and makes one of
 * them fatal. `shim.py` compiles it, and has the other side of `struct control` and of `struct record`.
 *
 * A process is armed by `faults_arm`, or as the child of an armed one, through the variable DAGFLOW_FAULTS_CONTROL. All armed
 * processes count in one page that they share. What goes past the C library (stdio's own writes, mapped memory) is not seen;
 * the harness compares the recorded calls with the files that are there, and so finds out.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum action { COUNT, KILL, TEAR, EIO_ONCE, ENOSPC_ONCE, FULL, CUT };
enum kind { OPEN = 1, WRITE, TRUNCATE, SYNC, RENAME, LINK, SYMLINK, UNLINK, RMDIR, MKDIR, SEND };
enum verdict { GO, FAIL, HALF_THEN_DIE, HALF };

struct control {
  int64_t count;   /* of calls so far */
  int64_t target;  /* the call that is hit */
  int32_t action;
  int32_t sockets; /* whether messages on sockets count */
  int32_t hits;    /* of the fault */
  int32_t kind;    /* of the call that was hit */
  int32_t off;     /* the power is off: each process ends at its next call */
  int32_t owner;   /* the process that has the lock of the log; 0: none */
  char root[1024]; /* the folder, without symbolic links */
  char log[1024];  /* the file of `struct record`s, with CUT */
};

struct record {
  int64_t number, inode, offset, length; /* length: of the data that follows the two paths */
  int32_t kind, flags, path, target;     /* path, target: the lengths of the paths */
};

static struct control *control;

int faults_arm(const char *path) {
  int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  void *page = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (page == MAP_FAILED) return -1;
  control = page;
  return 0;
}

void faults_disarm(void) { control = NULL; }

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("DAGFLOW_FAULTS_CONTROL");
  if (path && *path) faults_arm(path);
}

static void __attribute__((noreturn)) die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

/* ------------------------------------------------------------------------------------------------------------ which files */

static int is_below(const char *path) {
  size_t length = strlen(control->root);
  return !strncmp(path, control->root, length) && (path[length] == '/' || !path[length]);
}

/* The path without symbolic links, but for its last part, which the call is about. */
static int resolve(int folder, const char *path, char *out) {
  char joined[2 * PATH_MAX], head[PATH_MAX];
  if (!path || !*path) return 0;
  if (path[0] == '/') {
    snprintf(joined, sizeof joined, "%s", path);
  } else if (folder == AT_FDCWD) {
    if (!getcwd(head, sizeof head)) return 0;
    snprintf(joined, sizeof joined, "%s/%s", head, path);
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t n = readlink(link, head, sizeof head - 1);
    if (n < 0) return 0;
    head[n] = 0;
    snprintf(joined, sizeof joined, "%s/%s", head, path);
  }
  size_t length = strlen(joined);
  while (length > 1 && joined[length - 1] == '/') joined[--length] = 0;
  char *last = strrchr(joined, '/');
  char name[NAME_MAX + 1];
  snprintf(name, sizeof name, "%s", last + 1);
  *last = 0;
  if (!realpath(*joined ? joined : "/", head)) return 0;
  return snprintf(out, PATH_MAX, "%s/%s", strcmp(head, "/") ? head : "", name) < PATH_MAX && is_below(out);
}

static int path_of(int fd, char *out) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, out, PATH_MAX - 1);
  if (n < 0) return 0;
  out[n] = 0;
  return is_below(out);
}

static int is_socket(int fd) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  return control->sockets && !getpeername(fd, (struct sockaddr *)&peer, &length);
}

/* ------------------------------------------------------------------------------------------------------ counting and faults */

static int is_recording(void) { return control->action == CUT; }

/* Calls are recorded in the order in which they happen: one at a time, in all processes of the launch. */
static void lock(void) {
  int32_t me = getpid();
  for (int turn = 1;; turn++) {
    if (control->off) die();
    int32_t none = 0;
    if (__atomic_compare_exchange_n(&control->owner, &none, me, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
    if (turn % 1000 == 0 && none != me && syscall(SYS_kill, none, 0) < 0 && errno == ESRCH)
      __atomic_compare_exchange_n(&control->owner, &none, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    sched_yield();
  }
}

static void unlock(void) { __atomic_store_n(&control->owner, 0, __ATOMIC_SEQ_CST); }

static int takes_space(enum kind kind) { return kind == OPEN || kind == WRITE || kind == LINK || kind == SYMLINK || kind == MKDIR || kind == RENAME; }

/* Launches do not always make the same calls: where the one with the target's number is of another kind, a later one is hit. */
static int can_hit(enum kind kind) {
  switch (control->action) {
    case COUNT: return 0;
    case TEAR: return kind == WRITE || kind == SEND;
    case ENOSPC_ONCE:
    case FULL: return takes_space(kind);
    default: return 1;
  }
}

/* Count a call, and return what is to happen instead of it. */
static enum verdict counted(enum kind kind, int64_t *number) {
  if (is_recording()) lock();
  int64_t n = *number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
  if (n < control->target || !can_hit(kind)) return GO;
  if (__atomic_fetch_add(&control->hits, 1, __ATOMIC_SEQ_CST)) {
    if (control->action != FULL) return GO;
  } else {
    control->kind = kind;
  }
  if (control->action == TEAR) return HALF_THEN_DIE;
  if (control->action == CUT) control->off = 1;
  if (control->action == KILL || control->action == CUT) die();
  if (control->action == FULL && kind == WRITE && control->hits == 1) return HALF; /* what still fits */
  errno = kind == SEND ? ECONNRESET : control->action == EIO_ONCE ? EIO : ENOSPC;
  return FAIL;
}

static void record(enum kind kind, int64_t number, int64_t inode, int32_t flags, int64_t offset, const char *path,
                   const char *target, const struct iovec *data, int parts, int64_t length) {
  struct record head = {number, inode, offset, length, kind, flags, strlen(path), strlen(target)};
  struct iovec all[64] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)target, head.target}};
  int used = 3;
  for (int i = 0; i < parts && length > 0 && used < 64; i++, used++) {
    size_t size = data[i].iov_len < (size_t)length ? data[i].iov_len : (size_t)length;
    all[used] = (struct iovec){data[i].iov_base, size};
    length -= size;
  }
  int fd = syscall(SYS_openat, AT_FDCWD, control->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || length > 0 || syscall(SYS_writev, fd, all, used) < 0) abort();
  syscall(SYS_close, fd);
}

/* ------------------------------------------------------------------------------------------------------------------- opening */

static int opened(int folder, const char *path, int flags, mode_t mode) {
  char full[PATH_MAX];
  int64_t number;
  int changes = (flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE;
  if (!control || !changes || !resolve(folder, path, full)) return syscall(SYS_openat, folder, path, flags, mode);
  if (counted(OPEN, &number) == FAIL) return -1;
  int fd = syscall(SYS_openat, folder, path, flags, mode);
  if (is_recording()) {
    int error = errno;
    struct stat status;
    if (fd >= 0 && !fstat(fd, &status)) record(OPEN, number, status.st_ino, flags, 0, full, "", NULL, 0, 0);
    unlock();
    errno = error;
  }
  return fd;
}

#define OPENS(name, folder, parameters)                                                                                          \
  int name parameters {                                                                                                          \
    mode_t mode = 0;                                                                                                             \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                                                  \
      va_list rest;                                                                                                              \
      va_start(rest, flags);                                                                                                     \
      mode = va_arg(rest, mode_t);                                                                                               \
      va_end(rest);                                                                                                              \
    }                                                                                                                            \
    return opened(folder, path, flags, mode);                                                                                    \
  }
OPENS(open, AT_FDCWD, (const char *path, int flags, ...))
OPENS(open64, AT_FDCWD, (const char *path, int flags, ...))
OPENS(openat, at, (int at, const char *path, int flags, ...))
OPENS(openat64, at, (int at, const char *path, int flags, ...))
int __open_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __openat_2(int at, const char *path, int flags) { return opened(at, path, flags, 0); }
int __openat64_2(int at, const char *path, int flags) { return opened(at, path, flags, 0); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* ------------------------------------------------------------------------------------------------------------------- writing */

/* The connection is lost for the other side, too. */
static int lost(int fd) {
  int error = errno;
  shutdown(fd, SHUT_RDWR);
  errno = error;
  return -1;
}

/* Where a write without an offset goes. */
static off_t place_of(int fd) {
  struct stat status;
  int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_APPEND) && !fstat(fd, &status)) return status.st_size;
  return lseek(fd, 0, SEEK_CUR);
}

static size_t total(const struct iovec *data, int parts) {
  size_t bytes = 0;
  for (int i = 0; i < parts; i++) bytes += data[i].iov_len;
  return bytes;
}

/* Write all, or the first half. `at`: -1 for the file's own position. */
static ssize_t wrote(int fd, const struct iovec *data, int parts, off_t at, int half) {
  if (half) {
    char *joined = malloc(total(data, parts) + 1), *end = joined;
    for (int i = 0; i < parts; i++) end = mempcpy(end, data[i].iov_base, data[i].iov_len);
    size_t size = (end - joined + 1) / 2;
    ssize_t done = at < 0 ? syscall(SYS_write, fd, joined, size) : syscall(SYS_pwrite64, fd, joined, size, at);
    free(joined);
    return done;
  }
  if (parts == 1 && at < 0) return syscall(SYS_write, fd, data->iov_base, data->iov_len);
  if (parts == 1) return syscall(SYS_pwrite64, fd, data->iov_base, data->iov_len, at);
  if (at < 0) return syscall(SYS_writev, fd, data, parts);
  return syscall(SYS_pwritev, fd, data, parts, (long)at, (long)0);
}

static ssize_t written(int fd, const struct iovec *data, int parts, off_t at) {
  char path[PATH_MAX];
  int64_t number;
  if (!control) return wrote(fd, data, parts, at, 0);
  int is_file = path_of(fd, path);
  if (!is_file && !(at < 0 && is_socket(fd))) return wrote(fd, data, parts, at, 0);
  enum verdict verdict = counted(is_file ? WRITE : SEND, &number);
  if (verdict == FAIL) return is_file ? -1 : lost(fd);
  off_t place = is_file && is_recording() ? (at < 0 ? place_of(fd) : at) : 0;
  ssize_t done = wrote(fd, data, parts, at, verdict == HALF || verdict == HALF_THEN_DIE);
  if (verdict == HALF_THEN_DIE) die();
  if (is_recording()) {
    int error = errno;
    struct stat status;
    if (is_file && done > 0 && !fstat(fd, &status)) record(WRITE, number, status.st_ino, 0, place, path, "", data, parts, done);
    unlock();
    errno = error;
  }
  return done;
}

#define ONE(bytes, size) &(struct iovec){(void *)(bytes), size}, 1
ssize_t write(int fd, const void *bytes, size_t size) { return written(fd, ONE(bytes, size), -1); }
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return written(fd, ONE(bytes, size), at); }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) { return written(fd, ONE(bytes, size), at); }
ssize_t writev(int fd, const struct iovec *data, int parts) { return written(fd, data, parts, -1); }
ssize_t pwritev(int fd, const struct iovec *data, int parts, off_t at) { return written(fd, data, parts, at); }
ssize_t pwritev64(int fd, const struct iovec *data, int parts, off64_t at) { return written(fd, data, parts, at); }

/* Copies within the kernel: callers fall back to reading and writing, which is counted. */
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t size, unsigned flags) {
  char path[PATH_MAX];
  if (control && path_of(to, path)) {
    errno = EXDEV;
    return -1;
  }
  return syscall(SYS_copy_file_range, from, at, to, there, size, flags);
}
static ssize_t sent(int to, int from, off_t *at, size_t size) {
  char path[PATH_MAX];
  if (control && path_of(to, path)) {
    errno = EINVAL;
    return -1;
  }
  return syscall(SYS_sendfile, to, from, at, size);
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) { return sent(to, from, at, size); }
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) { return sent(to, from, at, size); }

static int truncated(int fd, const char *named, off_t size) {
  char path[PATH_MAX];
  int64_t number;
  struct stat status;
  int counts = control && (named ? resolve(AT_FDCWD, named, path) : path_of(fd, path));
  if (counts && counted(TRUNCATE, &number) == FAIL) return -1;
  int result = named ? syscall(SYS_truncate, named, size) : syscall(SYS_ftruncate, fd, size);
  if (counts && is_recording()) {
    int error = errno;
    if (!result && !(named ? stat(path, &status) : fstat(fd, &status))) record(TRUNCATE, number, status.st_ino, 0, size, path, "", NULL, 0, 0);
    unlock();
    errno = error;
  }
  return result;
}
int truncate(const char *path, off_t size) { return truncated(-1, path, size); }
int truncate64(const char *path, off64_t size) { return truncated(-1, path, size); }
int ftruncate(int fd, off_t size) { return truncated(fd, NULL, size); }
int ftruncate64(int fd, off64_t size) { return truncated(fd, NULL, size); }

/* Space that is reserved: only a longer file changes what is read. */
static int reserved(int fd, int mode, off_t start, off_t size) {
  struct stat status;
  char path[PATH_MAX];
  if (control && path_of(fd, path)) {
    if (mode) {
      errno = EOPNOTSUPP;
      return -1;
    }
    return fstat(fd, &status) || status.st_size >= start + size ? 0 : truncated(fd, NULL, start + size);
  }
  return syscall(SYS_fallocate, fd, mode, start, size);
}
int fallocate(int fd, int mode, off_t start, off_t size) { return reserved(fd, mode, start, size); }
int fallocate64(int fd, int mode, off64_t start, off64_t size) { return reserved(fd, mode, start, size); }
int posix_fallocate(int fd, off_t start, off_t size) { return reserved(fd, 0, start, size) ? errno : 0; }
int posix_fallocate64(int fd, off64_t start, off64_t size) { return reserved(fd, 0, start, size) ? errno : 0; }

/* A sync is only noted: after a cut, the harness decides what was on the disk. */
static int synced(int fd, long call) {
  char path[PATH_MAX];
  int64_t number;
  struct stat status;
  if (!control || !path_of(fd, path)) return syscall(call, fd);
  if (counted(SYNC, &number) == FAIL) return -1;
  if (is_recording()) {
    if (!fstat(fd, &status)) record(SYNC, number, status.st_ino, 0, 0, path, "", NULL, 0, 0);
    unlock();
  }
  return 0;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

/* --------------------------------------------------------------------------------------------------------------------- names */

static int64_t inode_at(const char *path) {
  struct stat status;
  return fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) ? 0 : (int64_t)status.st_ino;
}

/* A call that gives, moves or takes names. `first`, `second`: its paths, of which one may be elsewhere. */
#define NAMED(kind, flags, first, second, has_first, has_second, call)                                                           \
  char one[PATH_MAX] = "", two[PATH_MAX] = "";                                                                                   \
  int64_t number;                                                                                                                \
  if (!control) return call;                                                                                                     \
  int is_first = has_first && (first), is_second = has_second && (second);                                                       \
  if (!is_first && !is_second) return call;                                                                                      \
  if (counted(kind, &number) == FAIL) return -1;                                                                                 \
  int result = call;                                                                                                             \
  if (is_recording()) {                                                                                                          \
    int error = errno;                                                                                                           \
    if (!result) record(kind, number, inode_at(has_second ? two : one), flags, 0, one, two, NULL, 0, 0);                         \
    unlock();                                                                                                                    \
    errno = error;                                                                                                               \
  }                                                                                                                              \
  return result

int rename(const char *from, const char *to) {
  NAMED(RENAME, 0, resolve(AT_FDCWD, from, one), resolve(AT_FDCWD, to, two), 1, 1, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat(int a, const char *from, int b, const char *to) {
  NAMED(RENAME, 0, resolve(a, from, one), resolve(b, to, two), 1, 1, syscall(SYS_renameat2, a, from, b, to, 0));
}
int renameat2(int a, const char *from, int b, const char *to, unsigned how) {
  NAMED(RENAME, how, resolve(a, from, one), resolve(b, to, two), 1, 1, syscall(SYS_renameat2, a, from, b, to, how));
}
int link(const char *from, const char *to) {
  NAMED(LINK, 0, resolve(AT_FDCWD, from, one), resolve(AT_FDCWD, to, two), 1, 1, syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int linkat(int a, const char *from, int b, const char *to, int how) {
  NAMED(LINK, 0, resolve(a, from, one), resolve(b, to, two), 1, 1, syscall(SYS_linkat, a, from, b, to, how));
}
int symlink(const char *text, const char *to) {
  NAMED(SYMLINK, 0, (snprintf(one, sizeof one, "%s", text), 0), resolve(AT_FDCWD, to, two), 1, 1, syscall(SYS_symlinkat, text, AT_FDCWD, to));
}
int symlinkat(const char *text, int b, const char *to) {
  NAMED(SYMLINK, 0, (snprintf(one, sizeof one, "%s", text), 0), resolve(b, to, two), 1, 1, syscall(SYS_symlinkat, text, b, to));
}
int unlink(const char *path) { NAMED(UNLINK, 0, resolve(AT_FDCWD, path, one), 0, 1, 0, syscall(SYS_unlinkat, AT_FDCWD, path, 0)); }
int unlinkat(int at, const char *path, int how) {
  NAMED((how & AT_REMOVEDIR ? RMDIR : UNLINK), 0, resolve(at, path, one), 0, 1, 0, syscall(SYS_unlinkat, at, path, how));
}
int remove(const char *path) {
  struct stat status;
  return !lstat(path, &status) && S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}
int rmdir(const char *path) { NAMED(RMDIR, 0, resolve(AT_FDCWD, path, one), 0, 1, 0, syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)); }
int mkdir(const char *path, mode_t mode) {
  NAMED(MKDIR, 0, resolve(AT_FDCWD, path, one), 0, 1, 0, syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int mkdirat(int at, const char *path, mode_t mode) { NAMED(MKDIR, 0, resolve(at, path, one), 0, 1, 0, syscall(SYS_mkdirat, at, path, mode)); }

/* ------------------------------------------------------------------------------------------------------------------- sockets */

/* Count a message. Returns FAIL, or GO; dies with half of it sent. */
static enum verdict message(int fd, const void *bytes, size_t size) {
  int64_t number;
  if (!control || !is_socket(fd)) return GO;
  enum verdict verdict = counted(SEND, &number);
  if (verdict == HALF_THEN_DIE) {
    syscall(SYS_sendto, fd, bytes, size / 2, MSG_NOSIGNAL, NULL, 0);
    die();
  }
  if (is_recording()) unlock();
  return verdict;
}
ssize_t send(int fd, const void *bytes, size_t size, int flags) {
  return message(fd, bytes, size) == FAIL ? lost(fd) : syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}
ssize_t sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
  return message(fd, bytes, size) == FAIL ? lost(fd) : syscall(SYS_sendto, fd, bytes, size, flags, to, length);
}
ssize_t sendmsg(int fd, const struct msghdr *all, int flags) {
  const struct iovec none = {NULL, 0}, *first = all->msg_iovlen ? all->msg_iov : &none;
  return message(fd, first->iov_base, first->iov_len) == FAIL ? lost(fd) : syscall(SYS_sendmsg, fd, all, flags);
}
