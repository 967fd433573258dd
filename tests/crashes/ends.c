/* Preloaded into a program: ends the program, or fills its disk, at a chosen change of its files.

   `arm` chooses the folder, the change (1 for the first) and the action at that change. Each change
   becomes a line of a log: the kind of the change, and the file. Only the process that was armed
   counts; its children have the library, but are not armed. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTHING, KILL, TEAR, FILL };

static char folder[PATH_MAX];
static long count, chosen;
static int action, torn, full, armed_pid, log_file = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void arm(const char *path, long change, int what, int log)
{
    strncpy(folder, path, sizeof folder - 1);
    chosen = change;
    action = what;
    log_file = log;
    armed_pid = getpid();
}

static void end(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static int is_inside(const char *path)
{
    return log_file >= 0 && armed_pid == getpid() && !strncmp(path, folder, strlen(folder));
}

static char *path_of(int file, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    return path;
}

/* Log a change; true if it is the chosen one. */
static int note(const char *how, const char *path)
{
    char line[PATH_MAX + 64];
    int size = snprintf(line, sizeof line, "%s %s\n", how, path + strlen(folder));
    REAL(write)(log_file, line, size);
    return ++count == chosen;
}

/* Before a change without content, which a full disk allows. */
static void meet(const char *how, const char *path)
{
    if (!is_inside(path) || !note(how, path))
        return;
    if (action != FILL)
        end();
    full = 1;
}

/* Before a write: the number of bytes to write; -1 if the disk is full. */
static ssize_t allowed(int file, size_t size)
{
    char path[PATH_MAX];
    if (file == log_file || !is_inside(path_of(file, path)))
        return size;
    if (full)
        return -1;
    if (!note("write", path))
        return size;
    if (action == KILL)
        end();
    torn = action == TEAR;
    full = action == FILL;
    return full && size < 2 ? -1 : (ssize_t)size / 2;
}

static ssize_t written(ssize_t done)
{
    if (torn)
        end();
    return done;
}

#define WRITES(name, parameters, ...)                                                              \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        ssize_t part = allowed(file, size);                                                        \
        if (part < 0) {                                                                            \
            errno = ENOSPC;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        return written(REAL(name)(__VA_ARGS__));                                                   \
    }

WRITES(write, (int file, const void *content, size_t size), file, content, part)
WRITES(pwrite, (int file, const void *content, size_t size, off_t at), file, content, part, at)
WRITES(pwrite64, (int file, const void *content, size_t size, off64_t at), file, content, part, at)
WRITES(sendfile, (int file, int from, off_t *at, size_t size), file, from, at, part)
WRITES(sendfile64, (int file, int from, off64_t *at, size_t size), file, from, at, part)

#define CHANGES(name, how, parameters, path, ...)                                                  \
    int name parameters                                                                            \
    {                                                                                              \
        char of[PATH_MAX] __attribute__((unused));                                                 \
        meet(how, path);                                                                           \
        return REAL(name)(__VA_ARGS__);                                                            \
    }

CHANGES(rename, "rename", (const char *from, const char *to), to, from, to)
CHANGES(unlink, "unlink", (const char *path), path, path)
CHANGES(rmdir, "rmdir", (const char *path), path, path)
CHANGES(mkdir, "mkdir", (const char *path, mode_t mode), path, path, mode)
CHANGES(ftruncate, "truncate", (int file, off_t size), path_of(file, of), file, size)
CHANGES(ftruncate64, "truncate", (int file, off64_t size), path_of(file, of), file, size)

int unlinkat(int at, const char *name, int flags) /* of shutil.rmtree */
{
    char path[2 * PATH_MAX];
    snprintf(path + strlen(path_of(at, path)), PATH_MAX, "/%s", name);
    meet(flags & AT_REMOVEDIR ? "rmdir" : "unlink", path);
    return REAL(unlinkat)(at, name, flags);
}

/* A file is created, or emptied. */
#define OPENS(name)                                                                                \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                       \
            va_list more;                                                                          \
            va_start(more, flags);                                                                 \
            mode = va_arg(more, mode_t);                                                           \
            va_end(more);                                                                          \
        }                                                                                          \
        if (flags & (O_CREAT | O_TRUNC))                                                           \
            meet("open", path);                                                                    \
        return REAL(name)(path, flags, mode);                                                      \
    }

OPENS(open)
OPENS(open64)
