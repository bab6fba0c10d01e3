/* Three functions in turn, as fast as it can, or every 4 ms with an argument. EXTRA percent more work
   for the first one stand for a change that a comparison has to find (culprits.py --planted). */
#include <stdint.h>
#include <time.h>

#define SEEN __attribute__((noinline, noclone))
#ifndef EXTRA
#define EXTRA 0
#endif

static volatile uint64_t sink;

/* No function, as one that is inlined would have all the samples. */
#define WORK(steps) \
    uint64_t sum = sink; \
    for (int i = 0; i < (steps) * 200; i++) sum = sum * 6364136223846793005u + i; \
    sink = sum
SEEN void parse(void) { WORK(100 + EXTRA); }
SEEN void encode(void) { WORK(60); }
SEEN void store(void) { WORK(40); }

int main(int count, char **arguments) {
    (void)arguments;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        for (int i = 0; i < 20; i++) parse(), encode(), store();
        if (count < 2) continue;
        next.tv_nsec += 4000000;
        if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}
