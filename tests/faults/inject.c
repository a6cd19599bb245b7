/* Counts what a process does to the files under one folder, and makes it fail at a chosen event.
 *
 * Loaded with LD_PRELOAD, so that Python, numpy and Rust are seen alike and every child process is too. The control file, which is
 * named by NEURISE_FAULTS or by faults_arm, is shared memory: all processes of a run count together, and only one of them fails.
 * Calls that go to the system without the C library are not seen: of safetensors, which Rust writes, the last rename.
 * tests/faults/injection.py writes the control file and reads the counts; keep the two layouts the same.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { OPEN, WRITE, TORN, FSYNC, RENAME, UNLINK, MKDIR, TRUNCATE, LINK, LOCK };
enum action { COUNT, KILL, KILL_ALL, FAIL_ONCE, FAIL_ON, SIGNAL, VANISH, JUMP };

struct control {
    uint64_t count;        /* events so far */
    uint64_t target;       /* the event to act at, from 1; 0 for none */
    int64_t jump;          /* seconds that the clock jumps by */
    uint32_t action, value; /* what is done, and the number of the error or of the signal */
    uint32_t counted;      /* which kinds of events are counted, a bit each */
    uint32_t fired;        /* whether it has happened */
    char root[512];        /* the folder, as an absolute path */
    uint8_t kinds[1 << 16]; /* what the events were */
};

static struct control *shared;

/* The function of the C library that one of ours stands before. */
#define REAL(name)                                                         \
    ({                                                                     \
        static __typeof__(&name) real;                                     \
        if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);      \
        real;                                                              \
    })

void faults_arm(const char *path) {
    int file = REAL(open64)(path, O_RDWR | O_CLOEXEC);
    if (file < 0) _exit(99);
    void *place = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) _exit(99);
    shared = place;
    REAL(close)(file);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("NEURISE_FAULTS");
    if (path && *path) faults_arm(path);
}

static int is_inside(int folder, const char *path) {
    char full[1024];
    if (!shared || !path) return 0;
    size_t length = strlen(shared->root);
    if (path[0] != '/') {
        char link[64];
        ssize_t n;
        if (folder == AT_FDCWD) {
            if (!getcwd(full, sizeof full - 1)) return 0;
            n = (ssize_t)strlen(full);
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            n = readlink(link, full, sizeof full - 2);
            if (n < 0) return 0;
        }
        snprintf(full + n, sizeof full - (size_t)n, "/%s", path);
        path = full;
    }
    return !strncmp(path, shared->root, length) && (path[length] == '/' || !path[length]);
}

static int is_watched(int file) {
    char link[64], path[1024];
    if (!shared) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return is_inside(AT_FDCWD, path);
}

/* Count an event; where it is the chosen one, act. Returns whether the call is to fail, with errno set. */
static int event(enum kind kind) {
    struct control *c = shared;
    if (!(c->counted >> kind & 1)) return 0;
    uint64_t number = __atomic_add_fetch(&c->count, 1, __ATOMIC_SEQ_CST);
    if (number <= sizeof c->kinds) c->kinds[number - 1] = (uint8_t)kind;
    if (!c->target || number < c->target) return 0;
    if (c->action == FAIL_ON) {
        c->fired = 1;
        errno = (int)c->value;
        return 1;
    }
    if (number != c->target) return 0;
    c->fired = 1;
    switch (c->action) {
    case KILL: kill(getpid(), SIGKILL); break;
    case KILL_ALL: kill(0, SIGKILL); break;
    case SIGNAL: kill(getpid(), (int)c->value); break;
    case FAIL_ONCE: errno = (int)c->value; return 1;
    case VANISH: {
        char gone[600];
        snprintf(gone, sizeof gone, "%s.gone", c->root);
        REAL(rename)(c->root, gone);
        break;
    }
    default: break;
    }
    return 0;
}

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC); }

#define OPENS(name)                                                        \
    int name(const char *path, int flags, ...) {                           \
        va_list more;                                                      \
        va_start(more, flags);                                             \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                      \
        if (writes(flags) && is_inside(AT_FDCWD, path) && event(OPEN)) return -1; \
        return REAL(name)(path, flags, mode);                              \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                     \
    int name(int folder, const char *path, int flags, ...) {               \
        va_list more;                                                      \
        va_start(more, flags);                                             \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                      \
        if (writes(flags) && is_inside(folder, path) && event(OPEN)) return -1; \
        return REAL(name)(folder, path, flags, mode);                      \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

#define FOPENS(name)                                                       \
    FILE *name(const char *path, const char *mode) {                       \
        if (strpbrk(mode, "wa+") && is_inside(AT_FDCWD, path) && event(OPEN)) return NULL; \
        return REAL(name)(path, mode);                                     \
    }
FOPENS(fopen)
FOPENS(fopen64)

/* A write is two events: before it, and when half of its bytes are there. A disk that fills takes the half and no more. */
ssize_t write(int file, const void *bytes, size_t n) {
    if (!is_watched(file)) return REAL(write)(file, bytes, n);
    if (event(WRITE)) return -1;
    if (n < 2) return REAL(write)(file, bytes, n);
    ssize_t half = REAL(write)(file, bytes, n / 2);
    if (half < (ssize_t)(n / 2) || event(TORN)) return half;
    ssize_t rest = REAL(write)(file, (const char *)bytes + half, n - (size_t)half);
    return rest < 0 ? half : half + rest;
}

#define PWRITES(name, offset_type)                                         \
    ssize_t name(int file, const void *bytes, size_t n, offset_type at) {  \
        return is_watched(file) && event(WRITE) ? -1 : REAL(name)(file, bytes, n, at); \
    }
PWRITES(pwrite, off_t)
PWRITES(pwrite64, off64_t)

ssize_t writev(int file, const struct iovec *parts, int n) {
    return is_watched(file) && event(WRITE) ? -1 : REAL(writev)(file, parts, n);
}

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *file) {
    if (!shared || !is_watched(fileno(file))) return REAL(fwrite)(bytes, size, n, file);
    if (event(WRITE)) return 0;
    size_t half = REAL(fwrite)(bytes, size, n / 2, file);
    fflush(file);
    if (half < n / 2 || (n > 1 && event(TORN))) return half;
    return half + REAL(fwrite)((const char *)bytes + half * size, size, n - half, file);
}

#define OF_FILE(name, kind, parameters, arguments)                         \
    int name parameters {                                                  \
        return is_watched(file) && event(kind) ? -1 : REAL(name) arguments; \
    }
OF_FILE(fsync, FSYNC, (int file), (file))
OF_FILE(fdatasync, FSYNC, (int file), (file))
OF_FILE(ftruncate, TRUNCATE, (int file, off_t n), (file, n))
OF_FILE(ftruncate64, TRUNCATE, (int file, off64_t n), (file, n))
OF_FILE(flock, LOCK, (int file, int how), (file, how))

#define OF_PATH(name, kind, inside, parameters, arguments)                 \
    int name parameters {                                                  \
        return (inside) && event(kind) ? -1 : REAL(name) arguments;        \
    }
OF_PATH(rename, RENAME, is_inside(AT_FDCWD, old) || is_inside(AT_FDCWD, new), (const char *old, const char *new), (old, new))
OF_PATH(renameat, RENAME, is_inside(from, old) || is_inside(to, new),
        (int from, const char *old, int to, const char *new), (from, old, to, new))
OF_PATH(renameat2, RENAME, is_inside(from, old) || is_inside(to, new),
        (int from, const char *old, int to, const char *new, unsigned flags), (from, old, to, new, flags))
OF_PATH(unlink, UNLINK, is_inside(AT_FDCWD, path), (const char *path), (path))
OF_PATH(unlinkat, UNLINK, is_inside(folder, path), (int folder, const char *path, int flags), (folder, path, flags))
OF_PATH(rmdir, UNLINK, is_inside(AT_FDCWD, path), (const char *path), (path))
OF_PATH(mkdir, MKDIR, is_inside(AT_FDCWD, path), (const char *path, mode_t mode), (path, mode))
OF_PATH(mkdirat, MKDIR, is_inside(folder, path), (int folder, const char *path, mode_t mode), (folder, path, mode))
OF_PATH(link, LINK, is_inside(AT_FDCWD, new), (const char *old, const char *new), (old, new))
OF_PATH(linkat, LINK, is_inside(to, new), (int from, const char *old, int to, const char *new, int flags),
        (from, old, to, new, flags))
OF_PATH(symlink, LINK, is_inside(AT_FDCWD, new), (const char *old, const char *new), (old, new))
OF_PATH(symlinkat, LINK, is_inside(to, new), (const char *old, int to, const char *new), (old, to, new))

/* The wall clock of this run: it has jumped once the chosen event is there. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = REAL(clock_gettime)(clock, now);
    if (!failed && clock == CLOCK_REALTIME && shared && shared->action == JUMP && shared->count >= shared->target)
        now->tv_sec += shared->jump;
    return failed;
}
