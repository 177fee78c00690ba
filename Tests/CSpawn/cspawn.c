// What the C library has for this is hidden from Swift: extensions that have no POSIX name.
#define _GNU_SOURCE
#include "cspawn.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int cspawn_start(
    pid_t *process, const char *path, char *const arguments[], char *const environment[], const char *directory,
    const int descriptors[3]) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    for (int number = 0; number < 3 && error == 0; number++)
        error = posix_spawn_file_actions_adddup2(&actions, descriptors[number], number);
#ifdef __APPLE__
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
    if (error == 0 && directory != NULL) error = posix_spawn_file_actions_addchdir_np(&actions, directory);
    sigset_t signals;
    sigemptyset(&signals);
    if (error == 0) error = posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attributes, &signals);
    if (error == 0) error = posix_spawnattr_setpgroup(&attributes, 0);
    if (error == 0) error = posix_spawnattr_setflags(&attributes, flags);
    if (error == 0) error = posix_spawn(process, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int cspawn_start_at(
    pid_t *process, const char *path, char *const arguments[], char *const environment[], const char *terminal) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    // Who leads a session and opens a terminal has it as its own.
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID;
    error = posix_spawn_file_actions_addopen(&actions, 0, terminal, O_RDWR, 0);
    for (int number = 1; number < 3 && error == 0; number++)
        error = posix_spawn_file_actions_adddup2(&actions, 0, number);
#ifdef __APPLE__
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
    sigset_t signals;
    sigemptyset(&signals);
    if (error == 0) error = posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attributes, &signals);
    if (error == 0) error = posix_spawnattr_setflags(&attributes, flags);
    if (error == 0) error = posix_spawn(process, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int cspawn_terminal(int ends[2], char *name, size_t length) {
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0) return errno;
    const char *path = NULL;
    if (grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0) path = ptsname(ends[0]);
    ends[1] = path == NULL ? -1 : open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[1] < 0 || (size_t)snprintf(name, length, "%s", path) >= length) {
        int error = errno;
        close(ends[0]);
        if (ends[1] >= 0) close(ends[1]);
        return error != 0 ? error : ENAMETOOLONG;
    }
    return 0;
}

static int keep(int descriptor) { return fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

int cspawn_pipe(int ends[2]) {
#ifdef __APPLE__
    if (pipe(ends) != 0) return errno;
    return keep(ends[0]) != 0 || keep(ends[1]) != 0 ? errno : 0;
#else
    return pipe2(ends, O_CLOEXEC) != 0 ? errno : 0;
#endif
}

int cspawn_file(void) {
    const char *directory = getenv("TMPDIR");
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/spawned-XXXXXX", directory != NULL ? directory : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path) return -1;
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0) unlink(path);
    return file;
}

int cspawn_wait(pid_t process) {
    siginfo_t information;
    while (waitid(P_PID, (id_t)process, &information, WEXITED | WNOWAIT) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

int cspawn_wait_stopped(pid_t process) {
    siginfo_t information;
    while (waitid(P_PID, (id_t)process, &information, WSTOPPED | WEXITED | WNOWAIT) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

int cspawn_reap(pid_t process, int *status) {
    int raw;
    pid_t found = waitpid(process, &raw, WNOHANG);
    if (found < 0 && errno == ECHILD) {
        *status = INT_MIN;
        return 1;
    }
    if (found != process) return 0;
    *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -WTERMSIG(raw);
    return 1;
}
