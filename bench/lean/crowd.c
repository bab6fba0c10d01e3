/* Many processes or threads that sleep, or that work a little each, one after the other.

       crowd processes|threads N idle|busy

   All of a busy crowd together keep one CPU busy: each works once in ten seconds, for ten seconds
   divided by N. "ready" is printed when all have started; they end with the end of standard input,
   and with the parent. */
#define _GNU_SOURCE
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

#define PERIOD_NS 10000000000L
#define STACK_BYTES (32 << 10)

static long count;
static int is_busy;
static struct timespec began;

static long cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((noinline)) static void spin(long until) {
  while (cpu_ns() < until)
    for (volatile int i = 0; i < 1000; i++)
      ;
}

/* Stacks of different depths. */
__attribute__((noinline)) static int work(int depth, long until) {
  if (depth == 0) {
    spin(until);
    return 0;
  }
  return work(depth - 1, until) + depth;
}

static void live(long number) {
  if (!is_busy)
    for (;;)
      pause();
  for (long turn = 0;; turn++) {
    long at = (PERIOD_NS / count) * number + began.tv_nsec;
    struct timespec when = {began.tv_sec + at / 1000000000L + turn * (PERIOD_NS / 1000000000L), at % 1000000000L};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
    work(number % 16, cpu_ns() + PERIOD_NS / count);
  }
}

static void *thread(void *number) {
  live((long)number);
  return NULL;
}

static void start_process(long number) {
  char name[16];
  int child = fork();
  if (child < 0) {
    perror("fork");
    exit(1);
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(name, sizeof name, "crowd-%ld", number % 100);
    prctl(PR_SET_NAME, name);
    live(number);
  }
}

static void start_thread(long number, char *stacks) {
  pthread_attr_t attributes;
  pthread_t started;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stacks + number * STACK_BYTES, STACK_BYTES);
  int error = pthread_create(&started, &attributes, thread, (void *)number);
  if (error) {
    fprintf(stderr, "pthread_create: %s\n", strerror(error));
    exit(1);
  }
}

int main(int words, char **word) {
  if (words != 4)
    return 2;
  int is_threads = !strcmp(word[1], "threads");
  count = atol(word[2]);
  is_busy = !strcmp(word[3], "busy");
  clock_gettime(CLOCK_MONOTONIC, &began);
  /* Own group, so that all of it can be killed at once. */
  setpgid(0, 0);
  char *stacks = NULL;
  if (is_threads) {
    stacks = mmap(NULL, count * STACK_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
      perror("mmap");
      return 1;
    }
    /* Few pages of each stack are used. */
    madvise(stacks, count * STACK_BYTES, MADV_NOHUGEPAGE);
  }
  for (long number = 0; number < count; number++) {
    if (is_threads)
      start_thread(number, stacks);
    else
      start_process(number);
  }
  printf("ready\n");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0)
    ;
  if (is_threads)
    _exit(0);
  /* All others of the group, so that none is left to a parent that does not wait. */
  signal(SIGTERM, SIG_IGN);
  kill(0, SIGTERM);
  while (wait(NULL) > 0)
    ;
  return 0;
}
