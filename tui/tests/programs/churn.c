// The source of two programs and two libraries, which differ by NAME and STEP. The programs make
// changes that a sampled process can undergo. Of a library only `work` is used.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOINED(a, b) a##b
#define NAMED(a, b) JOINED(a, b)
#define APART __attribute__((noinline, noclone))

static volatile unsigned long sum;

APART static void NAMED(spin_, NAME)(void) {
    for (long i = 0; i < 100000 + STEP; i++) sum += i;
}

APART void work(void) {
    NAMED(spin_, NAME)();
    sum += STEP;
}

// CPU time, so that the number of samples does not depend on how busy the machine is.
static long used_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

APART static void for_a_while(void (*function)(void), long ms) {
    for (long end = used_ms() + ms; used_ms() < end;) function();
    sum++;
}

// Starts a child with this pid; 0 for any. The last child's pid is free once it was waited for.
static pid_t child(pid_t number) {
    struct clone_args args = {.exit_signal = SIGCHLD};
    args.set_tid = number ? (unsigned long)&number : 0;
    args.set_tid_size = number != 0;
    return syscall(SYS_clone3, &args, sizeof args);
}

// reuse ROUNDS OTHER: starts children with the same pid, which run the two programs in turn.
static int reuse(int rounds, char *self, char *other) {
    pid_t number = 0;
    for (int round = 0; round < rounds; round++) {
        pid_t pid = child(number);
        if (pid == 0) {
            execl(round % 2 ? other : self, "churn", "work", NULL);
            _exit(9);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid) return 1;
        number = pid;
    }
    printf("%d\n", number);
    return 0;
}

// exec ROUNDS OTHER: becomes the other program, which becomes this one.
static int exec(int rounds, char *self, char *other) {
    for_a_while(work, 100);
    if (rounds == 0) return 0;
    char left[16];
    snprintf(left, sizeof left, "%d", rounds - 1);
    execl(other, "churn", "exec", left, self, other, NULL);
    return 9;
}

// libraries ROUNDS A B: loads them in turn to the same place.
static int libraries(int rounds, char *first, char *second) {
    void *place = NULL;
    int same = 0;
    for (int round = 0; round < rounds; round++) {
        void *library = dlopen(round % 2 ? second : first, RTLD_NOW);
        if (library == NULL) return 1;
        void (*function)(void) = (void (*)(void))dlsym(library, "work");
        same += place == (void *)function;
        place = (void *)function;
        for_a_while(function, 100);
        dlclose(library);
    }
    printf("%d\n", same);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        for_a_while(work, 100);
        return 0;
    }
    int rounds = atoi(argv[2]);
    int (*run)(int, char *, char *) = libraries;
    if (strcmp(argv[1], "reuse") == 0) run = reuse;
    if (strcmp(argv[1], "exec") == 0) run = exec;
    return run(rounds, argv[4], argv[3]);
}
