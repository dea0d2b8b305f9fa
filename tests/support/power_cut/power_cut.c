/* Preloaded: logs in POWER_CUT_LOG, in order, all changes to files below POWER_CUT_ROOT and all
 * calls that force them to storage. Nothing is really forced.
 *
 * Stores into mapped files are found by a comparison before each record: sectors that have changed
 * since the last comparison are logged first. Each record is a header, the values of the watched
 * counters, and up to two byte strings; `power_cut.py` reads them. For a call that forces data to
 * storage, the last string is the place in the program, if the program has set it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE, SIZE, CREATE, RENAME, LINK, UNLINK, MKDIR, RMDIR, SYNC, SYNC_NAMES, NOTE };

struct header
{
    uint32_t kind, first_length, second_length, counters;
    uint64_t inode;
    int64_t offset;
};

struct region
{
    char *begin;
    size_t length;
    ino_t inode;
    char *seen;
};

#define SECTOR 512
#define ALIAS(name, other) extern __typeof__(other) name __attribute__((alias(#other)))
#define MAX_REGIONS 16
#define MAX_COUNTERS 8

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct region regions[MAX_REGIONS];
static volatile int64_t *watched[MAX_COUNTERS];
static uint32_t watched_count;
static _Thread_local char place[512];
static int log_file = -1;
static const char *root;

__attribute__((constructor)) static void begin(void) {
    root = getenv("POWER_CUT_ROOT");
    const char *path = getenv("POWER_CUT_LOG");
    if (NULL != root && NULL != path) {
        log_file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
}

static void give_up(const char *why) {
    dprintf(2, "power_cut: %s\n", why);
    _exit(98);
}

static void put(enum kind kind, ino_t inode, int64_t offset, const void *a, size_t a_length, const void *b, size_t b_length) {
    struct header header = { kind, (uint32_t)a_length, (uint32_t)b_length, watched_count, inode, offset };
    int64_t values[MAX_COUNTERS];
    for (uint32_t i = 0; i < watched_count; i++) {
        values[i] = __atomic_load_n(watched[i], __ATOMIC_ACQUIRE);
    }
    struct iovec parts[] = {
        { &header, sizeof header },
        { values, watched_count * sizeof values[0] },
        { (void *)a, a_length },
        { (void *)b, b_length } };
    size_t length = sizeof header + watched_count * sizeof values[0] + a_length + b_length;
    if ((ssize_t)length != syscall(SYS_writev, log_file, parts, 4)) {
        give_up("cannot write its log");
    }
}

/* Record what was stored into mapped files since the last call. */
static void put_stores(void) {
    char sector[SECTOR];
    for (int i = 0; i < MAX_REGIONS; i++) {
        struct region *region = &regions[i];
        for (size_t at = 0; NULL != region->begin && at < region->length; at += SECTOR) {
            size_t length = region->length - at < SECTOR ? region->length - at : SECTOR;
            memcpy(sector, region->begin + at, length);
            if (0 != memcmp(sector, region->seen + at, length)) {
                memcpy(region->seen + at, sector, length);
                put(WRITE, region->inode, (int64_t)at, sector, length, NULL, 0);
            }
        }
    }
}

static void enter(void) {
    pthread_mutex_lock(&mutex);
    put_stores();
}

static void leave(void) {
    int kept = errno;
    pthread_mutex_unlock(&mutex);
    errno = kept;
}

/* Return the path relative to the root, NULL when it is not below it. */
static const char *below(const char *path) {
    size_t length = strlen(root);
    return 0 == strncmp(path, root, length) && '/' == path[length] ? path + length + 1 : NULL;
}

static const char *name_of(int file, char *buffer) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    if (length < 0) {
        return NULL;
    }
    buffer[length] = '\0';
    return below(buffer);
}

static int is_seen(int file) {
    char buffer[PATH_MAX];
    return log_file >= 0 && NULL != name_of(file, buffer);
}

/* As `below`, for a path as calls have it. */
static const char *resolve(int folder, const char *path, char *buffer) {
    if (log_file < 0 || NULL == path)
    {
        return NULL;
    }
    if ('/' == path[0]) {
        snprintf(buffer, PATH_MAX, "%s", path);
        return below(buffer);
    }
    char base[PATH_MAX] = "";
    if (AT_FDCWD == folder) {
        if (NULL == getcwd(base, sizeof base))
        {
            return NULL;
        }
    } else if (NULL == name_of(folder, base)) {
        return NULL;
    }
    if (snprintf(buffer, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) {
        give_up("a path is too long");
    }
    return below(buffer);
}

static ino_t inode_of(int file) {
    struct stat status;
    if (0 != fstat(file, &status)) {
        give_up("cannot tell an inode");
    }
    return status.st_ino;
}

/* ---- notes and places of the program --------------------------------------------------------- */

void power_cut_watch(int64_t *counter) {
    enter();
    if (watched_count == MAX_COUNTERS) {
        give_up("too many counters");
    }
    watched[watched_count++] = counter;
    leave();
}

void power_cut_note(const char *text) {
    enter();
    put(NOTE, 0, 0, text, strlen(text), NULL, 0);
    leave();
}

/* Set the place in the program that forces data to storage next; "" for none. */
void power_cut_place(const char *text) {
    snprintf(place, sizeof place, "%s", text);
}

void power_cut_look(void) {
    enter();
    leave();
}

/* ---- names ------------------------------------------------------------------------------------ */

static int open_and_note(int folder, const char *path, int flags, mode_t mode) {
    char buffer[PATH_MAX];
    const char *name = flags & (O_CREAT | O_TRUNC) ? resolve(folder, path, buffer) : NULL;
    if (NULL == name) {
        return (int)syscall(SYS_openat, folder, path, flags, mode);
    }
    enter();
    struct stat before;
    int is_new = 0 != fstatat(folder, path, &before, 0);
    int file = (int)syscall(SYS_openat, folder, path, flags, mode);
    if (file >= 0 && is_new) {
        put(CREATE, inode_of(file), 0, name, strlen(name), NULL, 0);
    } else if (file >= 0 && (flags & O_TRUNC) && before.st_size > 0) {
        put(SIZE, before.st_ino, 0, NULL, 0, NULL, 0);
    }
    leave();
    return file;
}

#define MODE(flags, mode)                                                                              \
    mode_t mode = 0;                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE))                                                                 \
    {                                                                                                  \
        va_list rest;                                                                                  \
        va_start(rest, flags);                                                                         \
        mode = va_arg(rest, mode_t);                                                                   \
        va_end(rest);                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_and_note(AT_FDCWD, path, flags, mode);
}

ALIAS(open64, open);

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_and_note(folder, path, flags, mode);
}

ALIAS(openat64, openat);

static int two_names(enum kind kind, long call, int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char from_buffer[PATH_MAX], to_buffer[PATH_MAX];
    const char *a = resolve(from_folder, from, from_buffer), *b = resolve(to_folder, to, to_buffer);
    if (NULL == a && NULL == b) {
        return (int)syscall(call, from_folder, from, to_folder, to, flags);
    }
    if (NULL == a || NULL == b) {
        give_up("a file comes or goes");
    }
    enter();
    int result = (int)syscall(call, from_folder, from, to_folder, to, flags);
    if (0 == result) {
        put(kind, 0, 0, a, strlen(a), b, strlen(b));
    }
    leave();
    return result;
}

int rename(const char *from, const char *to) {
    return two_names(RENAME, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return two_names(RENAME, SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int link(const char *from, const char *to) {
    return two_names(LINK, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    return two_names(LINK, SYS_linkat, from_folder, from, to_folder, to, flags);
}

static int one_name(enum kind kind, long call, int folder, const char *path, long argument) {
    char buffer[PATH_MAX];
    const char *name = resolve(folder, path, buffer);
    if (NULL == name) {
        return (int)syscall(call, folder, path, argument);
    }
    enter();
    int result = (int)syscall(call, folder, path, argument);
    if (0 == result) {
        put(kind, 0, 0, name, strlen(name), NULL, 0);
    }
    leave();
    return result;
}

int unlink(const char *path) { return one_name(UNLINK, SYS_unlinkat, AT_FDCWD, path, 0); }
int rmdir(const char *path) { return one_name(RMDIR, SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR); }
int mkdir(const char *path, mode_t mode) { return one_name(MKDIR, SYS_mkdirat, AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return one_name(MKDIR, SYS_mkdirat, folder, path, mode); }

int unlinkat(int folder, const char *path, int flags) {
    return one_name(flags & AT_REMOVEDIR ? RMDIR : UNLINK, SYS_unlinkat, folder, path, flags);
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static ssize_t write_and_note(int file, const void *data, size_t length, int64_t offset) {
    int is_placed = offset >= 0;
    struct iovec part = { (void *)data, length };
    if (!is_seen(file)) {
        return is_placed ? syscall(SYS_pwritev, file, &part, 1, offset, 0L) : syscall(SYS_writev, file, &part, 1);
    }
    enter();
    if (!is_placed) {
        struct stat status;
        fstat(file, &status);
        offset = fcntl(file, F_GETFL) & O_APPEND ? status.st_size : lseek(file, 0, SEEK_CUR);
    }
    ssize_t written = is_placed ? syscall(SYS_pwritev, file, &part, 1, offset, 0L) : syscall(SYS_writev, file, &part, 1);
    if (written > 0) {
        put(WRITE, inode_of(file), offset, data, (size_t)written, NULL, 0);
    }
    leave();
    return written;
}

ssize_t write(int file, const void *data, size_t length) { return write_and_note(file, data, length, -1); }
ssize_t pwrite(int file, const void *data, size_t length, off_t at) { return write_and_note(file, data, length, at); }
ALIAS(pwrite64, pwrite);

static int resize(int file, int64_t length) {
    if (!is_seen(file))
    {
        return (int)syscall(SYS_ftruncate, file, length);
    }
    enter();
    int result = (int)syscall(SYS_ftruncate, file, length);
    if (0 == result) {
        put(SIZE, inode_of(file), length, NULL, 0, NULL, 0);
    }
    leave();
    return result;
}

int ftruncate(int file, off_t length) { return resize(file, length); }
ALIAS(ftruncate64, ftruncate);

static int resize_named(const char *path, int64_t length) {
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    int result = resize(file, length);
    int kept = errno;
    close(file);
    errno = kept;
    return result;
}

int truncate(const char *path, off_t length) { return resize_named(path, length); }
ALIAS(truncate64, truncate);

static int reserve(int file, int64_t offset, int64_t length) {
    enter();
    struct stat before, after;
    fstat(file, &before);
    int result = 0 == syscall(SYS_fallocate, file, 0, offset, length) ? 0 : errno;
    fstat(file, &after);
    if (0 == result && after.st_size != before.st_size && is_seen(file)) {
        put(SIZE, after.st_ino, after.st_size, NULL, 0, NULL, 0);
    }
    leave();
    return result;
}

int posix_fallocate(int file, off_t offset, off_t length) { return reserve(file, offset, length); }
ALIAS(posix_fallocate64, posix_fallocate);

ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
    if (is_seen(to))
    {
        errno = EINVAL; /* the caller then writes */
        return -1;
    }
    return syscall(SYS_sendfile, to, from, offset, count);
}

ALIAS(sendfile64, sendfile);

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags) {
    if (is_seen(to))
    {
        errno = EXDEV; /* the caller then writes */
        return -1;
    }
    return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, length, flags);
}

/* ---- mapped files ----------------------------------------------------------------------------- */

/* The mapped file that begins at an address; with NULL, an unused slot. */
static struct region *region_at(void *address) {
    for (int i = 0; i < MAX_REGIONS; i++)
    {
        if (regions[i].begin == (char *)address) {
            return &regions[i];
        }
    }
    return NULL;
}

void *mmap(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    void *begin = (void *)syscall(SYS_mmap, at, length, protection, flags, file, offset);
    int is_written = (protection & PROT_WRITE) && MAP_SHARED == (flags & MAP_TYPE) && file >= 0;
    if (MAP_FAILED == begin || !is_written || !is_seen(file)) {
        return begin;
    }
    enter();
    struct region *region = region_at(NULL);
    char *seen = malloc(length);
    if (NULL == seen || NULL == region || 0 != offset) {
        give_up("cannot follow a mapped file");
    }
    memcpy(seen, begin, length);
    *region = (struct region){ begin, length, inode_of(file), seen };
    leave();
    return begin;
}

ALIAS(mmap64, mmap);

int munmap(void *begin, size_t length) {
    struct region *region = log_file < 0 || NULL == begin ? NULL : region_at(begin);
    if (NULL == region) {
        return (int)syscall(SYS_munmap, begin, length);
    }
    enter();
    free(region->seen);
    region->begin = NULL;
    int result = (int)syscall(SYS_munmap, begin, length);
    leave();
    return result;
}

/* ---- storage ---------------------------------------------------------------------------------- */

static int force(int file, long call) {
    char buffer[PATH_MAX];
    const char *name = log_file < 0 ? NULL : name_of(file, buffer);
    if (NULL == name) {
        /* The root itself. */
        name = log_file >= 0 && 0 == strcmp(buffer, root) ? "" : NULL;
    }
    if (NULL == name) {
        return (int)syscall(call, file);
    }
    struct stat status;
    fstat(file, &status);
    enter();
    if (S_ISDIR(status.st_mode)) {
        put(SYNC_NAMES, 0, 0, name, strlen(name), place, strlen(place));
    } else {
        put(SYNC, status.st_ino, 0, NULL, 0, place, strlen(place));
    }
    leave();
    return 0;
}

int fsync(int file) { return force(file, SYS_fsync); }
int fdatasync(int file) { return force(file, SYS_fdatasync); }

int msync(void *begin, size_t length, int flags) {
    struct region *region = log_file < 0 || NULL == begin ? NULL : region_at(begin);
    if (NULL == region) {
        return (int)syscall(SYS_msync, begin, length, flags);
    }
    enter();
    if (length < region->length) {
        give_up("part of a mapped file is forced to storage");
    }
    put(SYNC, region->inode, 0, NULL, 0, place, strlen(place));
    leave();
    return 0;
}
