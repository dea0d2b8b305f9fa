/* Preloaded: fdatasync and fsync of files named *.rec.
 *
 * With FAIL_SYNC_AFTER they succeed so many times, then fail with EIO. With SYNC_CONTROL, a
 * directory, each appends the name of its file to `log` there, waits while there is a file NAME.hold,
 * and fails if there is a file NAME.fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int counted;

static int is_there(const char *control, const char *name, const char *suffix)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/%s.%s", control, name, suffix);
    return 0 == access(path, F_OK);
}

static int is_let_through(const char *control, const char *name)
{
    char line[4200], path[8192];
    snprintf(path, sizeof path, "%s/log", control);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int length = snprintf(line, sizeof line, "%s\n", name);
    int is_logged = length == write(log, line, (size_t)length);
    close(log);
    while (is_there(control, name, "hold"))
    {
        usleep(1000);
    }
    return is_logged && !is_there(control, name, "fail");
}

static int sync_or_fail(int fd, const char *function)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    const char *after = getenv("FAIL_SYNC_AFTER"), *control = getenv("SYNC_CONTROL");
    if (length > 4 && 0 == strncmp(path + length - 4, ".rec", 4))
    {
        path[length] = '\0';
        if ((NULL != after && __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED) >= atoi(after)) ||
            (NULL != control && !is_let_through(control, strrchr(path, '/') + 1)))
        {
            errno = EIO;
            return -1;
        }
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, function);
    return real(fd);
}

int fdatasync(int fd) { return sync_or_fail(fd, "fdatasync"); }
int fsync(int fd) { return sync_or_fail(fd, "fsync"); }
