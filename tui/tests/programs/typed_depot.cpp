namespace shop { struct Depot { int place = -5; unsigned long stock = 1234; }; 
struct Base { virtual ~Base() {} virtual long area(int scale) = 0; int kind = 4; };
Depot *depot() { static Depot d; return &d; } long ask(Base *b, int n) { return b->area(n); } }
