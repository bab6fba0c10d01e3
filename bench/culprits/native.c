/* Bottlenecks of C programs, one an argument. A line below says which, on or off the CPU, and what
   has to be named. Functions that have to be seen are not inlined, but for one that has to be. */
// CULPRIT crunch on-cpu `crunch`
// CULPRIT inlined on-cpu `mix`
// CULPRIT memcpy on-cpu `copy_frames`
// CULPRIT malloc on-cpu `make_nodes`
// CULPRIT strcat on-cpu `append_all`
// CULPRIT sort on-cpu `compare_slowly`
// CULPRIT regex on-cpu `match_lines`
// CULPRIT write on-cpu `write_bytes`
// CULPRIT lock off-cpu `with_lock`
// CULPRIT sync off-cpu `save_all`
// CULPRIT sleep off-cpu `poll_slowly`
// CULPRIT pipe off-cpu `wait_for_reply`
// CULPRIT fault on-cpu `touch_pages`
// CULPRIT cache on-cpu `chase`
// CULPRIT recursion on-cpu `fib`
// CULPRIT division on-cpu `divide_all`
// CULPRIT bucket on-cpu `find_in_bucket`
// CULPRIT spin on-cpu `spin_for_lock`
// CULPRIT sine on-cpu `sum_sines`
// CULPRIT pointer on-cpu `handle_event`
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEEN __attribute__((noinline, noclone))

static volatile uint64_t sink;

SEEN void crunch(void) {
    uint64_t sum = 1;
    for (int i = 0; i < 10000000; i++) sum = sum * 6364136223846793005u + i;
    sink = sum;
}

static inline __attribute__((always_inline)) uint64_t mix(uint64_t x) {
    for (int i = 0; i < 1000; i++) x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u + i;
    return x;
}
SEEN void hash_all(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 10000; i++) sum += mix(i);
    sink = sum;
}

static char from[1 << 22], to[1 << 22];
SEEN void copy_frames(void) {
    for (int i = 0; i < 100; i++) {
        memcpy(to, from, sizeof to);
        sink += to[i];
    }
}

struct node { struct node *next; char rest[40]; };
SEEN void make_nodes(void) {
    struct node *first = NULL;
    for (int i = 0; i < 100000; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = first;
        first = node;
    }
    while (first) {
        struct node *next = first->next;
        free(first);
        first = next;
    }
}

SEEN void append_all(void) {
    static char text[200000];
    text[0] = 0;
    for (int i = 0; i < 30000; i++) strcat(text, "piece ");
    sink = text[7];
}

SEEN int compare_slowly(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    for (int i = 0; i < 50; i++) x = x * 31 + 7, y = y * 31 + 7;
    return x < y ? -1 : x > y;
}
SEEN void sort_rows(void) {
    static uint64_t rows[100000];
    for (int i = 0; i < 100000; i++) rows[i] = (uint64_t)i * 2654435761u % 100003;
    qsort(rows, 100000, sizeof rows[0], compare_slowly);
}

SEEN void match_lines(void) {
    regex_t pattern;
    regcomp(&pattern, "^(a|b|ab)*c([0-9]+)x$", REG_EXTENDED);
    regmatch_t found[3];
    for (int i = 0; i < 200; i++) sink += regexec(&pattern, "abababababababababababc1234567x", 3, found, 0);
    regfree(&pattern);
}

SEEN void write_bytes(void) {
    static int file = -1;
    if (file < 0) file = open("bytes", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (int i = 0; i < 10000; i++) sink += write(file, "x", 1);
    lseek(file, 0, SEEK_SET);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
SEEN void with_lock(void) {
    pthread_mutex_lock(&mutex);
    usleep(2000);
    pthread_mutex_unlock(&mutex);
}

SEEN void save_all(void) {
    int file = open("saved", O_CREAT | O_WRONLY, 0600);
    sink += write(file, "row\n", 4);
    fsync(file);
    close(file);
}

/* With something to do behind the call, which would else be a jump: then no stack has it. */
SEEN void poll_slowly(void) {
    usleep(20000);
    sink++;
}

static int asked[2], replied[2];
static void *reply(void *unused) {
    char byte;
    while (read(asked[0], &byte, 1) == 1) {
        usleep(3000);
        if (write(replied[1], &byte, 1) != 1) break;
    }
    return unused;
}
SEEN void wait_for_reply(void) {
    static int is_open;
    if (!is_open) {
        pthread_t thread;
        if (pipe(asked) || pipe(replied)) abort();
        pthread_create(&thread, NULL, reply, NULL);
        is_open = 1;
    }
    char byte = 0;
    sink += write(asked[1], &byte, 1);
    sink += read(replied[0], &byte, 1);
}

SEEN void touch_pages(void) {
    size_t size = 64 << 20;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096) pages[at] = 1;
    munmap(pages, size);
}

SEEN void chase(void) {
    static uint32_t *next;
    const uint32_t count = 16 << 20;
    if (!next) {
        next = malloc(sizeof *next * count);
        for (uint32_t i = 0; i < count; i++) next[i] = (i * 1664525u + 1013904223u) % count;
    }
    uint32_t at = 0;
    for (int i = 0; i < 2000000; i++) at = next[at];
    sink = at;
}

SEEN uint64_t fib(int n) { return n < 2 ? 1 : fib(n - 1) + fib(n - 2); }

SEEN void divide_all(void) {
    uint64_t sum = 0;
    for (uint64_t i = 1; i < 3000000; i++) sum += (sink + 0xffffffffffffu) / i;
    sink = sum;
}

struct entry { struct entry *next; uint64_t key; };
SEEN uint64_t find_in_bucket(struct entry *at, uint64_t key) {
    while (at && at->key != key) at = at->next;
    return at ? at->key : 0;
}
SEEN void look_up_all(void) {
    static struct entry entries[3000];
    for (int i = 0; i < 3000; i++) entries[i] = (struct entry){i ? &entries[i - 1] : NULL, i};
    for (uint64_t key = 0; key < 3000; key++) sink += find_in_bucket(&entries[2999], key);
}

static atomic_int held;
SEEN void spin_for_lock(void) {
    while (atomic_exchange(&held, 1)) {}
}
static void *spin(void *unused) {
    for (;;) {
        spin_for_lock();
        for (volatile int i = 0; i < 3000; i++) {}
        atomic_store(&held, 0);
        for (volatile int i = 0; i < 300; i++) {}
    }
    return unused;
}

SEEN void sum_sines(void) {
    double sum = 0;
    for (int i = 0; i < 1000000; i++) sum += sin(i * 1e3) * cos(i * 1e4);
    sink = (uint64_t)sum;
}

SEEN void handle_event(int event) {
    for (volatile int i = 0; i < 100000; i++) sink += event;
}
SEEN void dispatch(void (*handler)(int)) {
    for (int event = 0; event < 100; event++) handler(event);
}

static void *lock_again(void *unused) {
    for (;;) with_lock();
    return unused;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "crunch";
#define IS(name) (!strcmp(what, name))
    pthread_t thread;
    if (IS("lock"))
        for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, lock_again, NULL);
    if (IS("spin")) {
        pthread_create(&thread, NULL, spin, NULL);
        spin(NULL);
    }
    for (;;) {
        if (IS("crunch")) crunch();
        else if (IS("inlined")) hash_all();
        else if (IS("memcpy")) copy_frames();
        else if (IS("malloc")) make_nodes();
        else if (IS("strcat")) append_all();
        else if (IS("sort")) sort_rows();
        else if (IS("regex")) match_lines();
        else if (IS("write")) write_bytes();
        else if (IS("lock")) with_lock();
        else if (IS("sync")) save_all();
        else if (IS("sleep")) poll_slowly();
        else if (IS("pipe")) wait_for_reply();
        else if (IS("fault")) touch_pages();
        else if (IS("cache")) chase();
        else if (IS("recursion")) sink += fib(30);
        else if (IS("division")) divide_all();
        else if (IS("bucket")) look_up_all();
        else if (IS("sine")) sum_sines();
        else if (IS("pointer")) dispatch(handle_event);
        else return 2;
    }
}
