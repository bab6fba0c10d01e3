// Locks that are known to be held by known threads. `holder` keeps a mutex 40 ms at a time and
// `waiter` waits for it; `low` waits for `mid`, `mid` for `top`, which sleeps; `one` and `other`
// wait for each other. Prints the line "ready" once all of them do so.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, upper = PTHREAD_MUTEX_INITIALIZER,
                       lower = PTHREAD_MUTEX_INITIALIZER, left = PTHREAD_MUTEX_INITIALIZER,
                       right = PTHREAD_MUTEX_INITIALIZER;

static void nap(int ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

static void *holder(void *unused) {
  for (;;) {
    pthread_mutex_lock(&shared);
    nap(40);
    pthread_mutex_unlock(&shared);
    nap(1);
  }
}

static void *waiter(void *unused) {
  for (;;) {
    pthread_mutex_lock(&shared);
    pthread_mutex_unlock(&shared);
    nap(2);
  }
}

static void *top(void *unused) {
  pthread_mutex_lock(&upper);
  nap(600000);
  return NULL;
}

static void *mid(void *unused) {
  nap(100);
  pthread_mutex_lock(&lower);
  pthread_mutex_lock(&upper);
  return NULL;
}

static void *low(void *unused) {
  nap(300);
  pthread_mutex_lock(&lower);
  return NULL;
}

static void *one(void *unused) {
  pthread_mutex_lock(&left);
  nap(200);
  pthread_mutex_lock(&right);
  return NULL;
}

static void *other(void *unused) {
  pthread_mutex_lock(&right);
  nap(200);
  pthread_mutex_lock(&left);
  return NULL;
}

int main(void) {
  void *(*threads[])(void *) = {holder, waiter, top, mid, low, one, other};
  const char *names[] = {"holder", "waiter", "top", "mid", "low", "one", "other"};
  for (int at = 0; at < 7; at++) {
    pthread_t thread;
    pthread_create(&thread, NULL, threads[at], NULL);
    pthread_setname_np(thread, names[at]);
  }
  nap(600);
  puts("ready");
  fflush(stdout);
  nap(600000);
}
