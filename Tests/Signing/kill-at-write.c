/* Kills the process that loads it (LD_PRELOAD) with SIGKILL at one of its write points, counted over all its threads:
   where it writes, syncs, cuts, renames or removes a file below KILL_BELOW, or sends to a Unix socket whose path begins
   with KILL_PEER. Which one says the file KILL_AT: nothing is counted until it is there; its text is a number from 1 on,
   and what happens at that point: before (nothing of it is done), torn (half of what is written) or after. Compiled by
   the tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum how { BEFORE, TORN, AFTER };

#define UNARMED LONG_MIN
static atomic_long left = UNARMED;
static enum how how;

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static void arm(void) {
    const char *path = getenv("KILL_AT");
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) return;
    long at;
    char word[8] = "";
    if (fscanf(file, "%ld %7s", &at, word) == 2 && at > 0) {
        how = !strcmp(word, "torn") ? TORN : !strcmp(word, "after") ? AFTER : BEFORE;
        long none = UNARMED;
        atomic_compare_exchange_strong(&left, &none, at);
    }
    fclose(file);
}

/* Whether this is the point. Points that come later, on other threads, wait for the end. */
static int is_now(void) {
    if (atomic_load(&left) == UNARMED) arm();
    if (atomic_load(&left) == UNARMED) return 0;
    long mine = atomic_fetch_sub(&left, 1);
    if (mine < 1) for (;;) pause();
    if (mine == 1 && how == BEFORE) end();
    return mine == 1;
}

/* Whether a path begins with a place; slashes may be doubled in either. */
static int is_below(const char *path) {
    const char *place = getenv("KILL_BELOW");
    if (!place) return 0;
    for (; *place; path++, place++) {
        while (path[0] == '/' && path[1] == '/') path++;
        while (place[0] == '/' && place[1] == '/') place++;
        if (*path != *place) return 0;
    }
    return 1;
}

static int is_ours(int number) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int is_peer(int number) {
    const char *place = getenv("KILL_PEER");
    struct sockaddr_un peer = {0};
    socklen_t length = sizeof peer;
    if (!place || getpeername(number, (struct sockaddr *)&peer, &length) || peer.sun_family != AF_UNIX) return 0;
    return !strncmp(peer.sun_path, place, strlen(place));
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* What is done at a write point; `half` is done in its place when it is to be torn. */
#define POINT(condition, whole, half)                              \
    do {                                                           \
        if (!(condition) || !is_now()) return whole;               \
        if (how == TORN) (void)(half); else (void)(whole);         \
        end();                                                     \
    } while (0);                                                   \
    return -1

ssize_t write(int file, const void *bytes, size_t count) {
    POINT(is_ours(file) || is_peer(file), NEXT(write)(file, bytes, count), NEXT(write)(file, bytes, count / 2));
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    POINT(is_ours(file), NEXT(pwrite)(file, bytes, count, at), NEXT(pwrite)(file, bytes, count / 2, at));
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    POINT(is_ours(file), NEXT(pwrite64)(file, bytes, count, at), NEXT(pwrite64)(file, bytes, count / 2, at));
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    POINT(is_ours(file) || is_peer(file), NEXT(writev)(file, parts, count), 0);
}
ssize_t send(int file, const void *bytes, size_t count, int flags) {
    POINT(is_peer(file), NEXT(send)(file, bytes, count, flags), NEXT(send)(file, bytes, count / 2, flags));
}
int fsync(int file) { POINT(is_ours(file), NEXT(fsync)(file), 0); }
int fdatasync(int file) { POINT(is_ours(file), NEXT(fdatasync)(file), 0); }
int ftruncate(int file, off_t size) { POINT(is_ours(file), NEXT(ftruncate)(file, size), 0); }
int ftruncate64(int file, off64_t size) { POINT(is_ours(file), NEXT(ftruncate64)(file, size), 0); }
int unlink(const char *path) { POINT(is_below(path), NEXT(unlink)(path), 0); }
int rename(const char *from, const char *to) { POINT(is_below(to), NEXT(rename)(from, to), 0); }
int renameat(int from, const char *old, int to, const char *name) {
    POINT(is_ours(to), NEXT(renameat)(from, old, to, name), 0);
}
int unlinkat(int place, const char *path, int flags) { POINT(is_ours(place), NEXT(unlinkat)(place, path, flags), 0); }
