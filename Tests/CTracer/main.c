// Runs a program under a tracer, which lets it do all that it wants. Usage: CTracer PROGRAM [ARGUMENT…]
// It writes the program's process id to its standard error once that is traced, and takes it along when it ends.
// The exit status is the program's, or 70 when there is no tracing here.
#if defined(__linux__)
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 2) return 64;
    pid_t child = fork();
    if (child < 0) return 70;
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(70);
        execv(words[1], words + 1);
        _exit(71);
    }
    for (int isFirst = 1;; isFirst = 0) {
        int status;
        if (waitpid(child, &status, 0) != child) return 70;
        if (WIFEXITED(status)) return WEXITSTATUS(status);
        if (WIFSIGNALED(status)) return 72;
        if (isFirst) {
            ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL);
            dprintf(2, "%d\n", (int)child);
        }
        // The first stop is that of execv; its signal was never meant for the program.
        ptrace(PTRACE_CONT, child, 0, isFirst ? 0 : WSTOPSIG(status));
    }
}
#else
int main(void) { return 70; }
#endif
