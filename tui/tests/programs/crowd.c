// Makes what a profiler has to follow, many times: mappings of code, processes, threads.
//
//     crowd mappings SECONDS     maps and unmaps its own code
//     crowd processes SECONDS    starts processes that end at once
//     crowd many PROCESSES THREADS    starts both, which sleep until it ends
//
// The first two print how many they made. The third prints a line once all are there.
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
#include <time.h>
#include <unistd.h>

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int mappings(long end) {
    int self = open("/proc/self/exe", O_RDONLY);
    long made = 0;
    for (; now_ms() < end; made++) {
        void *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0);
        if (code == MAP_FAILED) return 1;
        munmap(code, 4096);
    }
    printf("%ld\n", made);
    return 0;
}

static int processes(long end) {
    long made = 0;
    for (; now_ms() < end; made++) {
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

static int many(long number, long threads) {
    for (; number > 0; number--) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child > 0) continue;
        // It ends with the one that started it.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleep_on(NULL);
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (; threads > 0; threads--) {
        pthread_t thread;
        if (pthread_create(&thread, &small, sleep_on, NULL)) return 1;
    }
    puts("all are there");
    fflush(stdout);
    sleep_on(NULL);
    return 0;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    long end = now_ms() + 1000 * atol(words[2]);
    if (!strcmp(words[1], "mappings")) return mappings(end);
    if (!strcmp(words[1], "processes")) return processes(end);
    return count < 4 ? 2 : many(atol(words[2]), atol(words[3]));
}
