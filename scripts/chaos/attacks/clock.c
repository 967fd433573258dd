/* This preloaded library adds the seconds in the file $SC2POOL_CHAOS_CLOCK (a long) to the wall clock.

   The kernel's own clock is not set. So a wait until an instant of the wall clock, such as Ray's
   waits with a timeout, is turned into a wait for the time until that instant. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long none = 0;
static const volatile long *offset_s = &none;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("SC2POOL_CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        offset_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME)
        now->tv_sec += *offset_s;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int failed = (int)syscall(SYS_gettimeofday, now, zone);
    if (!failed)
        now->tv_sec += *offset_s;
    return failed;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

static struct timespec monotonic(const struct timespec *until)
{
    struct timespec wall, now;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &now);
    now.tv_sec += until->tv_sec - wall.tv_sec;
    now.tv_nsec += until->tv_nsec - wall.tv_nsec;
    if (now.tv_nsec < 0) {
        now.tv_sec -= 1;
        now.tv_nsec += 1000000000;
    } else if (now.tv_nsec >= 1000000000) {
        now.tv_sec += 1;
        now.tv_nsec -= 1000000000;
    }
    if (now.tv_sec < 0)
        now.tv_sec = 0;
    return now;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec now, at = *until;
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* A condition may wait by either clock; a time that is decades ahead is of the wall clock. */
    if (until->tv_sec / 2 > now.tv_sec)
        at = monotonic(until);
    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &at);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until)
{
    struct timespec at = monotonic(until);
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, &at);
}
