// Much inlining, several files, few lines of our own: what the standard
// library's templates become.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace shop {
struct Item {
    std::string name;
    double price;
    int count;
};

struct Stock {
    virtual ~Stock() = default;
    virtual double total(const std::vector<Item> &items) const = 0;
};

struct Plain : Stock {
    double total(const std::vector<Item> &items) const override {
        return std::accumulate(items.begin(), items.end(), 0.0, [](double sum, const Item &item) {
            return sum + item.price * item.count;
        });
    }
};

template <typename Key> struct Grouped : Stock {
    std::function<Key(const Item &)> key;
    explicit Grouped(std::function<Key(const Item &)> k) : key(std::move(k)) {}
    double total(const std::vector<Item> &items) const override {
        std::map<Key, double> sums;
        std::unordered_map<Key, std::vector<const Item *>> members;
        for (const Item &item : items) {
            sums[key(item)] += item.price;
            members[key(item)].push_back(&item);
        }
        double best = 0;
        for (const auto &[k, sum] : sums)
            best = std::max(best, sum + static_cast<double>(members[k].size()));
        return best;
    }
};

static std::vector<Item> parse(const std::string &text) {
    static const std::regex line("(\\w+)\\s+([0-9.]+)\\s+(\\d+)");
    std::vector<Item> items;
    std::istringstream in(text);
    for (std::string row; std::getline(in, row);) {
        std::smatch match;
        try {
            if (std::regex_search(row, match, line))
                items.push_back({match[1], std::stod(match[2]), std::stoi(match[3])});
        } catch (const std::exception &error) {
            std::fprintf(stderr, "%s\n", error.what());
        }
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const Item &a, const Item &b) { return a.price < b.price; });
    return items;
}
} // namespace shop

int main(int argc, char **argv) {
    std::string text;
    for (int i = 0; i < argc + 1000; i++)
        text += std::string(argv[0]).substr(0, 3) + " " + std::to_string(i * 0.5) + " 3\n";
    auto items = shop::parse(text);
    std::vector<std::unique_ptr<shop::Stock>> stocks;
    stocks.push_back(std::make_unique<shop::Plain>());
    stocks.push_back(std::make_unique<shop::Grouped<std::string>>(
        [](const shop::Item &item) { return item.name; }));
    stocks.push_back(std::make_unique<shop::Grouped<int>>(
        [](const shop::Item &item) { return item.count; }));
    double sum = 0;
    for (const auto &stock : stocks)
        sum += stock->total(items);
    std::printf("%f\n", sum);
}
