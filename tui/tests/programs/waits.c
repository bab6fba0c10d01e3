// Waits as often and as long as the names of its functions say, and ends.
#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void nap(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, 0);
}

// Put behind the last call that waits: else the compiler would make it a jump, and the function
// would not stay on the stack.
#define NOT_LAST __asm__ volatile("")

__attribute__((noinline)) void begin(void)
{
    nap(700000);
    NOT_LAST;
}

__attribute__((noinline)) void twenty_naps_of_30_ms(void)
{
    for (int i = 0; i < 20; i++)
        nap(30000);
    NOT_LAST;
}

__attribute__((noinline)) void three_thousand_short_naps(void)
{
    for (int i = 0; i < 3000; i++)
        nap(150);
    NOT_LAST;
}

__attribute__((noinline)) void ten_waits_for_work(int files)
{
    struct epoll_event event;
    for (int i = 0; i < 10; i++)
        epoll_wait(files, &event, 1, 40);
    NOT_LAST;
}

static void *hold_it(void *unused)
{
    for (int i = 0; i < 8; i++) {
        pthread_mutex_lock(&lock);
        nap(60000);
        pthread_mutex_unlock(&lock);
        nap(30000);
    }
    return unused;
}

__attribute__((noinline)) void want_the_lock(void)
{
    // Each time another thread holds the lock for the rest of 60 ms.
    for (int i = 0; i < 8; i++) {
        nap(45000);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        nap(30000);
    }
    NOT_LAST;
}

int main(void)
{
    begin();
    twenty_naps_of_30_ms();
    three_thousand_short_naps();
    ten_waits_for_work(epoll_create1(0));
    pthread_t holder;
    pthread_create(&holder, 0, hold_it, 0);
    pthread_detach(holder);
    want_the_lock();
    begin();
    return 0;
}
