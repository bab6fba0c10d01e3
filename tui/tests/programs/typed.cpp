#include <cstdio>
#include <string>
#define APART __attribute__((noinline, noclone))
namespace shop {
struct Depot;                                  // defined in typed_depot.cpp
struct Base { virtual ~Base() {} virtual long area(int scale) = 0; int kind = 4; };
struct Round : Base { double radius = 1.5; unsigned short edges = 65535; Depot *depot = nullptr; const char *title = "round one";
  APART long area(int scale) override; static int count; };
struct Virtual : virtual Base { int own = 11; APART long area(int scale) override; };
enum class Color : unsigned char { Red, Green = 3 };
template <typename T> struct Holder { T item; Color color = Color::Green; APART long take(const T &other); };
}
namespace shop { Depot *depot(); long ask(Base *, int); 
long Round::area(int scale) { __asm__ volatile("" ::: "memory"); return edges * scale; }
long Virtual::area(int scale) { __asm__ volatile("" ::: "memory"); return own * scale; }
template <typename T> long Holder<T>::take(const T &other) { __asm__ volatile("" ::: "memory"); return (long)other + item; }
int Round::count = 3;
APART std::string text(const Round &round, int n) { __asm__ volatile("" ::: "memory"); return std::string(n, 'x') + round.title; }
APART long over(Round &round) { __asm__ volatile("" ::: "memory"); return round.kind; }
APART long over(long a, Round *round) { __asm__ volatile("" ::: "memory"); return round->kind + a; }
}
int main() { using namespace shop; Round round; round.depot = depot(); Virtual v; Holder<long> holder{42}; long sum = 0;
  for (int i = 0; i < 50; i++) { sum += ask(&round, i % 2 + 1) + ask(&v, 3) + holder.take(7) + (long)text(round, 3).size() + over(round) + over(5, &round); }
  printf("%ld\n", sum); }
