// Runs a function of its own, and one that it has made at run time and written into a perf map by
// the pid that it has itself, in turn.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned sum;

__attribute__((noinline)) static void known_inside(unsigned rounds) {
    while (rounds--) sum += rounds;
}

// A loop that counts its first argument down (x86-64: dec %edi; jnz), or a return.
static const unsigned char LOOP[] = {0xff, 0xcf, 0x75, 0xfc, 0xc3};

int main(void) {
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    memcpy(code, LOOP, sizeof LOOP);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (!map) return 1;
    fprintf(map, "%lx %lx made_inside\n", (unsigned long)code, sizeof LOOP);
    fclose(map);
    puts("ready");
    fflush(stdout);
    for (;;) {
        known_inside(3000000);
        ((void (*)(unsigned))code)(10000000);
        sum++;
    }
}
