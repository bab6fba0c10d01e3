#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#define APART __attribute__((noinline, noclone))
enum state { IDLE, BUSY, DONE = 7 };
enum mode { READ = 1, WRITE = 2, RUN = 4, KEEP = 8 };
struct point { short x; unsigned char y; double z; };
typedef struct point point_t;
struct job { long id; struct point at; struct job *next; enum state state; const char *name; char tag[8];
    union { int number; float share; }; unsigned flag : 3; unsigned rest : 29; int low : 5; int high : 11; enum state then : 4; unsigned long wide : 61; signed char level; int counts[4]; };
APART int handle(struct job *job, double weight, enum mode mode, _Bool fast, int level) {
    __asm__ volatile("" : : "r"(job) : "memory"); return level < 0 ? -ENOENT : job->state + fast + mode + (int)weight; }
struct big { long a, b, c; };
APART long by_value(struct big big, int after, struct point small, unsigned short last) {
    __asm__ volatile("" : : "m"(big) : "memory"); return big.b + after + small.x + last; }
APART struct big hidden(struct job *job, int n) { struct big b = {job->id, n, 3}; __asm__ volatile("" : : "m"(b)); return b; }
int main(int argc, char **argv) {
    struct job second = {2, {-3, 200, 2.5}, 0, DONE, "second", "tag two", .number = -9, .flag = 5, .rest = 0x10000001, .low = -3, .high = 700, .then = DONE, .wide = 0x1fffffff00000000, .level = -1, .counts = {10,11,12,13}};
    struct job first = {1, {7, 9, -0.25}, &second, BUSY, "first", "tag one", .share = 0.5f, .flag = 1, .level = 4};
    long sum = 0; int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < rounds; i++) {
        sum += handle(&first, 1.5, READ | RUN, i % 2, i % 4 ? 1 : -1);
        struct big big = {1, 40 + i % 2, 3}; struct point p = {5, 6, 7};
        sum += by_value(big, -8, p, 65535); sum += hidden(&first, i).b;
    }
    printf("%ld\n", sum); return 0; }
