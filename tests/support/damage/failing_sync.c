/* Preloaded: fdatasync and fsync of files named *.rec succeed FAIL_SYNC_AFTER times, then fail with
 * EIO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int counted;

static int sync_or_fail(int fd, const char *name)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    const char *after = getenv("FAIL_SYNC_AFTER");
    if (length > 4 && NULL != after && 0 == strncmp(path + length - 4, ".rec", 4))
    {
        if (counted++ >= atoi(after))
        {
            errno = EIO;
            return -1;
        }
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fdatasync(int fd) { return sync_or_fail(fd, "fdatasync"); }
int fsync(int fd) { return sync_or_fail(fd, "fsync"); }
