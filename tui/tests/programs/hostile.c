/* A program whose thread has a name that clears the screen. The name of `hotAAAAAAAABBB` is
   replaced in the file. */
#include <sys/prctl.h>

__attribute__((noinline)) void hotAAAAAAAABBB(long rounds) {
    for (volatile long i = 0; i < rounds; i++) {
    }
}

int main(void) {
    prctl(PR_SET_NAME, "co\033[2J\nmm");
    for (;;) {
        hotAAAAAAAABBB(20000000);
    }
}
