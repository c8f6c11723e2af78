/* Runs a program up to a system call of its threads, counted from the start, and kills it there.
 *
 *     killed NUMBER PROGRAM ARGUMENT...
 *
 * Where the program ends before, the number of its system calls is told: "ended NUMBER".
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
    long wanted = count > 2 ? atol(words[1]) : 0, stops = 0;
    pid_t program = fork();
    if (program == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        execvp(words[2], words + 2);
        _exit(78);
    }
    int status;
    if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status))
        return 77; /* it may not be traced here */
    ptrace(PTRACE_SETOPTIONS, program, NULL,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
    ptrace(PTRACE_SYSCALL, program, NULL, NULL);
    for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0;) {
        if (!WIFSTOPPED(status))
            continue;
        int got = WSTOPSIG(status);
        if (got == (SIGTRAP | 0x80) && ++stops / 2 >= wanted) { /* it begins and ends */
            kill(program, SIGKILL);
            while (waitpid(-1, &status, __WALL) > 0)
                ;
            return 0;
        }
        int passed_on = got == SIGTRAP || got == SIGSTOP || got == (SIGTRAP | 0x80) ? 0 : got;
        ptrace(PTRACE_SYSCALL, thread, NULL, passed_on);
    }
    printf("ended %ld\n", stops / 2);
    return 0;
}
