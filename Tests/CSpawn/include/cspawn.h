#pragma once
#include <stddef.h>
#include <sys/types.h>

/// Starts `path`, which gets `descriptors` as its standard input, output and error and no other descriptor, no blocked or
/// ignored signal, and a process group of its own. `directory` may be NULL. Returns 0 or the number of the error.
int cspawn_start(
    pid_t *process, const char *path, char *const arguments[], char *const environment[], const char *directory,
    const int descriptors[3]);

/// Opens a pseudo terminal that no other program is given: `ends[0]` is where a person would sit, `ends[1]` keeps the
/// terminal alive, and `name` is its path. Returns 0 or the number of the error.
int cspawn_terminal(int ends[2], char *name, size_t length);

/// Starts `path` in a session of its own with the terminal called `terminal` as its own, and as its standard input, output
/// and error. Returns 0 or the number of the error.
int cspawn_start_at(
    pid_t *process, const char *path, char *const arguments[], char *const environment[], const char *terminal);

/// A pipe that no other program is given. Returns 0 or the number of the error.
int cspawn_pipe(int ends[2]);

/// A file without a name that no other program is given; -1 on an error.
int cspawn_file(void);

/// Waits until the child `process` has ended, and leaves it unreaped: until then its number is nobody else's. Returns 0 or the
/// number of the error.
int cspawn_wait(pid_t process);

/// Waits until all threads of a child have stopped, or it has ended, and leaves its status to be taken.
int cspawn_wait_stopped(pid_t process);

/// Takes the status of a child that may have ended: its exit status, or the negative number of the signal that ended it;
/// INT_MIN when it is no child of this process. Returns whether it had ended.
int cspawn_reap(pid_t process, int *status);
