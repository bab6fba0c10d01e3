// A small service to look at: four threads price orders and write them to a journal.
//
//     cc -O2 -g -pthread -o orders orders.c
//     ./orders                 finds discounts by looking through all of them
//     ./orders --sorted        finds them by bisection
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
enum { DISCOUNTS = 3000, WORKERS = 4, PAUSE_NS = 200000 };

struct discount { uint32_t customer, percent; };
static struct discount discounts[DISCOUNTS];
static int are_sorted, journal;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

FUNCTION uint32_t find_discount(uint32_t customer) {
    for (int i = 0; i < DISCOUNTS; i++)
        if (discounts[i].customer == customer) return discounts[i].percent;
    return 0;
}

FUNCTION uint32_t bisect_discount(uint32_t customer) {
    int low = 0, high = DISCOUNTS;
    while (low < high) {
        int middle = (low + high) / 2;
        if (discounts[middle].customer < customer) low = middle + 1; else high = middle;
    }
    return low < DISCOUNTS && discounts[low].customer == customer ? discounts[low].percent : 0;
}

FUNCTION uint64_t price_order(const uint32_t *customers, int lines) {
    uint64_t price = 0;
    for (int i = 0; i < lines; i++)
        price += 100 - (are_sorted ? bisect_discount(customers[i]) : find_discount(customers[i]));
    return price;
}

FUNCTION uint32_t parse_order(char *text, uint32_t seed) {
    uint32_t sum = 0;
    for (int i = 0; i < 400; i++) {
        int length = snprintf(text, 64, "order %u line %d", seed, i);
        for (int k = 0; k < length; k++) sum = sum * 31 + (uint8_t)text[k];
    }
    return sum;
}

// Each order is on the disk before the next one is written.
FUNCTION void append_journal(const char *text, uint64_t price) {
    char entry[128];
    int length = snprintf(entry, sizeof entry, "%s: %llu\n", text, (unsigned long long)price);
    pthread_mutex_lock(&journal_lock);
    if (pwrite(journal, entry, (size_t)length, 0) == length) fdatasync(journal);
    pthread_mutex_unlock(&journal_lock);
}

FUNCTION void *handle_orders(void *seed) {
    uint32_t number = (uint32_t)(uintptr_t)seed, customers[400];
    char text[64];
    for (;;) {
        number = number * 1664525 + parse_order(text, number);
        for (int i = 0; i < 400; i++) customers[i] = (number + (uint32_t)i * 7919) % (2 * DISCOUNTS);
        append_journal(text, price_order(customers, 400));
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    return NULL;
}

int main(int count, char **arguments) {
    are_sorted = count > 1 && strcmp(arguments[1], "--sorted") == 0;
    for (uint32_t i = 0; i < DISCOUNTS; i++) discounts[i] = (struct discount){i * 2, i % 30};
    journal = open("orders.journal", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (journal < 0) return perror("orders.journal"), 1;
    pthread_t worker;
    for (uintptr_t i = 0; i < WORKERS; i++) pthread_create(&worker, NULL, handle_orders, (void *)i);
    pthread_join(worker, NULL);
    return 0;
}
