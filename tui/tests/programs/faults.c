// Touches new memory for some seconds: three pages of four in one function, one in the other.
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, PAGES = 256 };

static char *room(int pages) {
  char *at = mmap(0, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    exit(1);
  madvise(at, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
  return at;
}

__attribute__((noinline)) void touch_three_of_four(volatile char *at) {
  for (int page = 0; page < 3 * PAGES; page++)
    at[page * PAGE] = 1;
}

__attribute__((noinline)) void touch_one_of_four(volatile char *at) {
  for (int page = 0; page < PAGES; page++)
    at[page * PAGE] = 1;
}

int main(void) {
  time_t end = time(0) + 4;
  while (time(0) < end) {
    char *three = room(3 * PAGES), *one = room(PAGES);
    touch_three_of_four(three);
    touch_one_of_four(one);
    munmap(three, 3 * PAGES * PAGE);
    munmap(one, PAGES * PAGE);
  }
  return 0;
}
