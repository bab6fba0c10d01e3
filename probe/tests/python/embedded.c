// A program with CPython inside, under a name that tells nothing of it.
int Py_BytesMain(int argc, char **argv);

int main(int argc, char **argv) {
    return Py_BytesMain(argc, argv);
}
