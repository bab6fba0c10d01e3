// Says that it is CPython 3.14 with asyncio, and is not. As soon as a file is there, it writes
// anything over what it said, again and again, while it is looked at.
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS 4096

typedef unsigned long word;

__attribute__((section(".PyRuntime"))) word _PyRuntime[WORDS] = {1};
__attribute__((section(".AsyncioDebug"), used)) word _AsyncioDebug[13] = {
    168, 136, 96, 108, 109, 128, 152, 0, 0, 936, 864, 872, 880};
const unsigned Py_Version = 0x030e00f0;

static long tid;
static const char *go;

static word *at(word number) { return _PyRuntime + number; }

// A word of a structure that begins at this word.
static void put(word start, word offset, word value) { _PyRuntime[start + offset / 8] = value; }

static void text(word start, const char *characters) {
    put(start, 0, 1);
    put(start, 8, (word)at(1800));
    put(start, 16, strlen(characters));
    put(start, 32, 1 << 2 | 1 << 5 | 1 << 6);
    strcpy((char *)at(start + 5), characters);
}

enum { INTERPRETER = 256, THREAD = 512, FRAME = 1024, END = 1100, CODE = 1200, TASK = 1600 };

static void tell(void) {
    memcpy(_PyRuntime, "xdebugpy", 8);
    put(0, 8, Py_Version);
    // Where things are: of interpreters, threads, frames and code.
    const word told[][2] = {{40, 808}, {64, 0}, {72, 8}, {96, 16}, {120, 24}, {192, 8}, {208, 72},
        {216, 152}, {224, 160}, {256, 8}, {264, 0}, {272, 56}, {280, 64}, {288, 74}, {320, 112},
        {328, 120}, {336, 128}, {344, 136}, {352, 68}, {384, 208}};
    for (unsigned i = 0; i < sizeof told / sizeof told[0]; i++) put(0, told[i][0], told[i][1]);
    put(0, 808, (word)at(INTERPRETER));
    put(INTERPRETER, 8, (word)at(THREAD));
    put(THREAD, 152, (word)pthread_self());
    put(THREAD, 160, tid);
    put(THREAD, 72, (word)at(FRAME));
    put(THREAD, 872, (word)at(TASK));
    put(FRAME, 0, (word)at(CODE));
    put(FRAME, 8, (word)at(END));
    put(FRAME, 56, (word)at(CODE) + 208);
    // `FRAME_OWNED_BY_CSTACK`.
    put(END, 72, 4 << 16);
    put(END, 8, 0);
    put(CODE, 0, 1);
    put(CODE, 64, 7ul << 32);
    put(CODE, 112, (word)at(1300));
    put(CODE, 120, (word)at(1400));
    put(CODE, 128, (word)at(1400));
    put(CODE, 136, (word)at(1500));
    text(1300, "no\nfile.py");
    text(1400, "pretended\033[31m");
    put(1500, 0, 1);
    put(1500, 16, 0);
    // A task that awaits itself; the frame is that of its coroutine.
    put(TASK, 96, (word)at(TASK));
    put(TASK, 104, 1ul << 32);
    put(TASK, 136, (word)at(1700));
    put(TASK, 128, (word)at(FRAME) - 72);
    text(1700, "no\033]0;task");
    put(1800, 168, 1 << 28);
}

static word random_word(void) {
    static word state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void *spoil(void *unused) {
    // What is read in each sample: frames, code, the task and its name.
    static const word read[] = {THREAD + 9, THREAD + 109, FRAME, FRAME + 1, FRAME + 7, FRAME + 9,
        END + 1, END + 9, CODE, CODE + 8, CODE + 14, CODE + 16, CODE + 17, TASK + 12, TASK + 13,
        TASK + 16, TASK + 17, 1400, 1402, 1404, 1500, 1502, 1701, 1702, 1704, 1821};
    (void)unused;
    while (access(go, F_OK)) usleep(10000);
    for (word number = 1;; number++) {
        word value = random_word(), place = read[random_word() % (sizeof read / sizeof *read)];
        // And now and then any other.
        if (number % 1024 == 0) place = random_word() % 1824;
        switch (random_word() % 6) {
            case 0: break;
            case 1: value = (word)at(value % WORDS); break;
            case 2: value = 0; break;
            case 3: value = -1; break;
            case 4: value |= 0xffff800000000000; break;
            case 5: value %= 4096; break;
        }
        _PyRuntime[place] = value;
        if (number % 3 == 0) {
            usleep(200);
            tell();
        }
    }
    return NULL;
}

__attribute__((noinline)) void _PyEval_EvalFrameDefault(void) {
    for (volatile long i = 0; i < 1000000; i++);
}

int main(int argc, char **argv) {
    pthread_t thread;
    go = argv[argc - 1];
    tid = syscall(SYS_gettid);
    tell();
    pthread_create(&thread, NULL, spoil, NULL);
    for (;;) _PyEval_EvalFrameDefault();
}
