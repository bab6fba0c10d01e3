// Bottlenecks of C++ programs, one an argument.
// CULPRIT map on-cpu countWords
// CULPRIT regex on-cpu scanAll
// CULPRIT throw on-cpu parseOrThrow
#include <map>
#include <regex>
#include <stdexcept>
#include <string>

#define SEEN __attribute__((noinline))

static volatile size_t sink;

SEEN void countWords() {
    std::map<std::string, int> counts;
    for (int i = 0; i < 200000; i++) counts["a word that is long " + std::to_string(i % 5000)]++;
    sink = counts.size();
}

SEEN void scanAll() {
    static const std::regex pattern("([a-z]+)@([a-z]+)\\.(com|org)");
    std::string line = "nobody of nowhere <somebody@example.org> and others";
    for (int i = 0; i < 1000; i++) sink += std::regex_search(line, pattern);
}

SEEN int parseOrThrow(int i) {
    if (i % 2) throw std::runtime_error("odd");
    return i;
}

int main(int argc, char **argv) {
    std::string what = argc > 1 ? argv[1] : "map";
    for (;;) {
        if (what == "map") countWords();
        else if (what == "regex") scanAll();
        else if (what == "throw") {
            for (int i = 0; i < 10000; i++) {
                try {
                    sink += parseOrThrow(i);
                } catch (const std::exception &) {
                    sink++;
                }
            }
        } else return 2;
    }
}
