// Two threads on one CPU pass a byte back and forth: each round is two switches.
//
//   pingpong SECONDS [SWITCHES_PER_SECOND [STALL_AFTER ROUNDS]]
//
// As fast as it can with 0 switches a second. With STALL_AFTER the first thread sleeps once for
// half a second, after so many rounds, in `the_stall`, and the program ends after ROUNDS. Prints rounds a second, and the switches of
// both threads as the kernel counts them.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static void nap(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

__attribute__((noinline)) static void the_stall(void) {
  nap(0.5);
  __asm__ volatile("");
}

static void *answer(void *unused) {
  char byte;
  while (read(there[0], &byte, 1) == 1)
    if (write(back[1], &byte, 1) != 1)
      break;
  return unused;
}

__attribute__((noinline)) static void one_round(void) {
  char byte = 0;
  if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
    exit(1);
}

int main(int count, char **words) {
  double seconds = count > 1 ? atof(words[1]) : 5;
  double per_second = count > 2 ? atof(words[2]) : 0;
  long stall_after = count > 3 ? atol(words[3]) : -1;
  long rounds_max = count > 4 ? atol(words[4]) : -1;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  if (pipe(there) || pipe(back))
    return 1;
  pthread_t thread;
  pthread_create(&thread, NULL, answer, NULL);
  double begin = now(), end = begin + seconds;
  long rounds = 0;
  while (now() < end && (rounds_max < 0 || rounds < rounds_max)) {
    for (int i = 0; i < 10; i++) {
      one_round();
      if (++rounds == stall_after)
        the_stall();
    }
    double ahead = per_second ? rounds * 2 / per_second - (now() - begin) : 0;
    if (ahead > 0.0005)
      nap(ahead);
  }
  seconds = now() - begin;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%.0f %ld\n", rounds / seconds, usage.ru_nvcsw + usage.ru_nivcsw);
}
