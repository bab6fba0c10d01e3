// Makes what a profiler has to follow, many times: mappings of code, processes, threads.
//
//     crowd mappings                  maps and unmaps its own code
//     crowd processes                 starts processes that end at once
//     crowd many PROCESSES THREADS    starts both, which sleep until it ends
//
// The first two go on until SIGTERM, and print how many they made. The third prints a line once all
// are there, and "no room" if that is refused.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;

static void end(int signal) {
    (void)signal;
    is_over = 1;
}

static int mappings(void) {
    int self = open("/proc/self/exe", O_RDONLY);
    long made = 0;
    for (; !is_over; made++) {
        void *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0);
        if (code == MAP_FAILED) return 1;
        munmap(code, 4096);
    }
    printf("%ld\n", made);
    return 0;
}

static int processes(void) {
    long made = 0;
    for (; !is_over; made++) {
        pid_t child = vfork();
        if (child == 0) _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child) return 1;
    }
    printf("%ld\n", made);
    return 0;
}

static void *sleep_on(void *nothing) {
    for (;;) pause();
    return nothing;
}

static int no_room(void) {
    puts("no room");
    return 1;
}

static int many(long number, long threads) {
    pid_t self = getpid();
    for (; number > 0; number--) {
        pid_t child = fork();
        if (child < 0) return no_room();
        if (child > 0) continue;
        // It ends with the one that started it, which may have ended already.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self) _exit(0);
        sleep_on(NULL);
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (; threads > 0; threads--) {
        pthread_t thread;
        if (pthread_create(&thread, &small, sleep_on, NULL)) return no_room();
    }
    puts("all are there");
    fflush(stdout);
    sleep_on(NULL);
    return 0;
}

int main(int count, char **words) {
    signal(SIGTERM, end);
    if (count == 2 && !strcmp(words[1], "mappings")) return mappings();
    if (count == 2 && !strcmp(words[1], "processes")) return processes();
    return count < 4 ? 2 : many(atol(words[2]), atol(words[3]));
}
