// Counts the calls of twenty of its functions, and how many of them an exception left:
// templates, overloads, virtual functions, operators, a constructor and a destructor.
// Prints `NAME TAB CALLS TAB LEFT` of each, and a checksum of its work.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#define APART __attribute__((noinline, noclone))
// Without the `asm` behind it, the compiler could leave out a call that changes nothing.
#define CALLED(number) calls[number]++; asm volatile("")

static unsigned long calls[20], left[20];

static const char *const names[20] = {
    "shop::Shelf<int>::put", "shop::Shelf<double>::put",
    "shop::Shelf<int>::take", "shop::Shelf<double>::take",
    "shop::pick(int)", "shop::pick(double)", "shop::pick(char const*)",
    "shop::largest<long>", "shop::largest<unsigned char>",
    "shop::Square::area", "shop::Circle::area",
    "shop::Guard::Guard", "shop::Guard::~Guard",
    "shop::Money::operator+", "shop::Adder::operator()",
    "shop::throws_deep", "shop::catches", "shop::rethrows",
    "shop::Counter::next", "hidden",
};

namespace shop {

template <class T> int number_of();
template <> int number_of<int>() { return 0; }
template <> int number_of<double>() { return 1; }

template <class T> struct Shelf {
    std::vector<T> all;
    APART void put(T value) { CALLED(number_of<T>()); all.push_back(value); }
    APART T take() {
        CALLED(2 + number_of<T>());
        if (all.empty()) { left[2 + number_of<T>()]++; throw std::out_of_range("empty"); }
        T value = all.back(); all.pop_back(); return value;
    }
};
template struct Shelf<int>;
template struct Shelf<double>;

APART long pick(int n) {
    CALLED(4);
    if (n % 4 == 0) { left[4]++; throw std::runtime_error("gone"); }
    return n;
}
APART long pick(double n) { CALLED(5); return (long)(n * 2); }
APART long pick(const char *text) {
    CALLED(6);
    if (!*text) { left[6]++; throw text; }
    return *text;
}

template <class T> APART T largest(T a, T b) { CALLED(sizeof(T) == 1 ? 8 : 7); return a > b ? a : b; }
template long largest<long>(long, long);
template unsigned char largest<unsigned char>(unsigned char, unsigned char);

struct Shape { virtual long area() const = 0; virtual ~Shape() {} };
struct Square : Shape { long side = 3; APART long area() const override { CALLED(9); return side * side; } };
struct Circle : Shape { long radius = 2; APART long area() const override { CALLED(10); return 3 * radius * radius; } };

struct Guard {
    long *sum;
    APART explicit Guard(long *where) : sum(where) { CALLED(11); *sum += 1; }
    APART ~Guard() { CALLED(12); *sum += 2; }
};

struct Money { long cents; APART Money operator+(const Money &other) const { CALLED(13); return {cents + other.cents}; } };
struct Adder { long by; APART long operator()(long n) const { CALLED(14); return n + by; } };

// Each call has an object to destroy when the exception passes.
APART long throws_deep(int n, long *sum) {
    CALLED(15);
    left[15]++;
    Guard guard(sum);
    if (n == 0) throw std::logic_error("deep");
    return throws_deep(n - 1, sum) + 1;
}
APART long catches(int n, long *sum) {
    CALLED(16);
    try { return throws_deep(n, sum); } catch (const std::logic_error &) { return n; }
}
APART long rethrows(int n) {
    CALLED(17);
    try { return pick(n); } catch (...) { left[17]++; throw; }
}
struct Counter { static long last; APART static long next() { CALLED(18); return ++last; } };
long Counter::last;

}

static APART long hidden(long n) { CALLED(19); return n ^ 5; }

int main() {
    long sum = 0;
    shop::Shelf<int> ints; shop::Shelf<double> doubles;
    shop::Square square; shop::Circle circle;
    shop::Shape *volatile shapes[2] = {&square, &circle};
    for (int i = 0; i < 200; i++) {
        ints.put(i);
        if (i % 2) doubles.put(i / 2.0);
        for (int more = 0; more < 2; more++) {
            try { sum += ints.take(); } catch (const std::out_of_range &) { sum--; }
        }
        try { sum += (long)doubles.take(); } catch (const std::exception &) { sum -= 2; }
        try { sum += shop::rethrows(i); } catch (const std::exception &) { sum -= 3; }
        try { sum += shop::pick(i % 3 ? "text" : ""); } catch (const char *) { sum -= 4; }
        sum += shop::pick(i * 0.5) + shop::largest<long>(i, 100) + shop::largest<unsigned char>(i, 7);
        sum += shapes[i % 2]->area() + (shop::Money{i} + shop::Money{1}).cents + shop::Adder{i}(2);
        if (i % 10 == 0) sum += shop::catches(i / 10, &sum);
        sum += shop::Counter::next() + hidden(i);
    }
    for (int i = 0; i < 20; i++) fprintf(stderr, "%s\t%lu\t%lu\n", names[i], calls[i], left[i]);
    fprintf(stderr, "checksum\t%ld\t0\n", sum);
}
