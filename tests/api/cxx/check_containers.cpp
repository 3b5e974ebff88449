/* SPDX-License-Identifier: MIT */
/*
 * check_containers.cpp -- containers in a heap, from one run to the next.
 *
 * GOAL    Each container holds after a run, and after a SIGKILL in the middle of a change, what a
 *         container of the standard library in ordinary memory holds after the same changes; in the
 *         end all memory is free again.
 * METHOD  The program starts itself, as processes with other addresses.  Each run compares all
 *         containers with the contents that the runs before must have left, changes them in a
 *         transaction, changes them again in another one, and is killed in the middle of that.
 *         The same function changes the container and its model.  check_cxx.sh compiles the program
 *         with other compilers, without exceptions, and with sanitizers.
 */
#include <xac_containers.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<boost/interprocess/containers/map.hpp>)
# define HAVE_BOOST 1
# include <boost/container/scoped_allocator.hpp>
# include <boost/interprocess/containers/deque.hpp>
# include <boost/interprocess/containers/list.hpp>
# include <boost/interprocess/containers/map.hpp>
# include <boost/interprocess/containers/set.hpp>
# include <boost/interprocess/containers/string.hpp>
# include <boost/interprocess/containers/vector.hpp>
# include <boost/unordered_map.hpp>
#else
# define HAVE_BOOST 0
#endif

namespace {

constexpr int runs = 3; /* that are killed; one more looks at what they have left */

[[noreturn]] void
fail(const std::string &what)
{
    std::fprintf(stderr, "check_containers: not so: %s; %s\n", what.c_str(),
                 xac_last_error());
    std::exit(EXIT_FAILURE);
}

/* ---- Elements, and contents as text --------------------------------------------------------- */

struct alignas(64) cell {
    int value;
};

void
print(std::string &out, int value)
{
    out += std::to_string(value) + ",";
}

void
print(std::string &out, const cell &aligned)
{
    if (reinterpret_cast<std::uintptr_t>(&aligned) % 64 != 0)
        fail("an element that is aligned to 64 bytes");
    print(out, aligned.value);
}

template <class T, class = void> struct has_order : std::true_type {
};
template <class T>
struct has_order<T, std::void_t<typename T::hasher>> : std::false_type {
};

template <class A, class B> void print(std::string &out, const std::pair<A, B> &value);

template <class T>
auto
print(std::string &out, const T &range) -> decltype(range.begin(), void())
{
    if constexpr (std::is_same_v<typename T::value_type, char>) {
        out.append(&*range.data(), range.size());
        out += ",";
    } else {
        std::vector<std::string> each;

        for (const auto &element : range) {
            each.emplace_back();
            print(each.back(), element);
        }
        if (!has_order<T>::value)
            std::sort(each.begin(), each.end());
        out += "[";
        for (const auto &text : each)
            out += text;
        out += "]";
    }
}

template <class A, class B>
void
print(std::string &out, const std::pair<A, B> &value)
{
    print(out, value.first);
    print(out, value.second);
}

/* Short ones lie in the string itself, long ones elsewhere. */
std::string
word(int n)
{
    return n % 3 == 0 ? std::to_string(n)
                      : "a word that is long enough to need memory " + std::to_string(n);
}

/* ---- Worlds: the model, ours, Boost's --------------------------------------------------------- */

struct model {
    using string = std::string;
    template <class T> using vector = std::vector<T>;
    template <class T> using deque = std::deque<T>;
    template <class T> using list = std::list<T>;
    template <class T> using set = std::set<T, std::less<>>;
    template <class K, class V> using map = std::map<K, V, std::less<>>;
    template <class K, class V>
    using unordered_map = std::unordered_map<K, V, xac::hash<K>>;
    template <class T> using unordered_set = std::unordered_set<T, xac::hash<T>>;

    string
    text(int n) const
    {
        return word(n);
    }
};

struct ours {
    using string = xac::string;
    template <class T> using vector = xac::vector<T>;
    template <class T> using deque = xac::deque<T>;
    template <class T> using list = xac::list<T>;
    template <class T> using set = xac::set<T>;
    template <class K, class V> using map = xac::map<K, V>;
    template <class K, class V> using unordered_map = xac::unordered_map<K, V>;
    template <class T> using unordered_set = xac::unordered_set<T>;

    string
    text(int n) const
    {
        return string(word(n).c_str(), heap.allocator());
    }
    const xac::heap &heap;
};

/* Ordinary containers with distances: those of the standard library that can. */
struct offset {
    using string = model::string;
    template <class T> using vector = std::vector<T, xac::offset_allocator<T>>;

    const xac::heap &heap;
};

#if HAVE_BOOST
struct boosts {
    template <class T>
    using scoped = boost::container::scoped_allocator_adaptor<xac::offset_allocator<T>>;
    using string = boost::interprocess::basic_string<char, std::char_traits<char>,
                                                     xac::offset_allocator<char>>;
    template <class T> using vector = boost::interprocess::vector<T, scoped<T>>;
    template <class T> using deque = boost::interprocess::deque<T, scoped<T>>;
    template <class T> using list = boost::interprocess::list<T, scoped<T>>;
    template <class T> using set = boost::interprocess::set<T, std::less<T>, scoped<T>>;
    template <class K, class V>
    using map =
        boost::interprocess::map<K, V, std::less<K>, scoped<std::pair<const K, V>>>;
    template <class K, class V>
    using unordered_map =
        boost::unordered_map<K, V, xac::hash<K>, std::equal_to<K>,
                             xac::offset_allocator<std::pair<const K, V>>>;

    string
    text(int n) const
    {
        return string(word(n).c_str(), heap.offset_allocator());
    }
    const xac::heap &heap;
};
#endif

/* ---- The changes of a run, for each container ------------------------------------------------- */

/* At both ends, in the middle, and gone again. */
template <class C, class Make>
void
change_sequence(C &c, int run, Make make)
{
    for (int i = 0; i < 150; i++)
        c.insert(i % 7 == 0 ? c.begin() : c.end(), make(1000 * run + i));
    auto middle = std::next(c.begin(), static_cast<std::ptrdiff_t>(c.size() / 2));
    c.insert(middle, make(-run));
    c.erase(c.begin(), std::next(c.begin(), 40));
}

struct vector_of_int {
    template <class W> using type = typename W::template vector<int>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &)
    {
        change_sequence(c, run, [](int n) { return n; });
        c.shrink_to_fit();
    }
};

struct vector_of_cells {
    template <class W> using type = typename W::template vector<cell>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &)
    {
        change_sequence(c, run, [](int n) { return cell{n}; });
    }
};

struct vector_of_strings {
    template <class W> using type = typename W::template vector<typename W::string>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &w)
    {
        change_sequence(c, run, [&](int n) { return w.text(n); });
        c.resize(c.size() + 3);
    }
};

struct deque_of_strings {
    template <class W> using type = typename W::template deque<typename W::string>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &w)
    {
        change_sequence(c, run, [&](int n) { return w.text(n); });
        c.pop_front();
    }
};

struct list_of_strings {
    template <class W> using type = typename W::template list<typename W::string>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &w)
    {
        change_sequence(c, run, [&](int n) { return w.text(n); });
        c.reverse();
        c.sort();
    }
};

struct set_of_strings {
    template <class W> using type = typename W::template set<typename W::string>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &w)
    {
        for (int i = 0; i < 200; i++)
            c.insert(w.text(100 * run + i));
        for (int i = 0; i < 90; i++)
            c.erase(w.text(100 * run + 2 * i));
    }
};

/* Keys are changed, made and removed. */
template <class C, class W>
void
change_map(C &c, int run, const W &w)
{
    for (int i = 0; i < 200; i++)
        c[w.text(100 * run + i)] += run + i;
    for (int i = 0; i < 60; i++)
        c.erase(w.text(100 * run + 3 * i));
}

struct map_of_strings {
    template <class W> using type = typename W::template map<typename W::string, int>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &w)
    {
        change_map(c, run, w);
    }
};

struct unordered_map_of_strings {
    template <class W>
    using type = typename W::template unordered_map<typename W::string, int>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &w)
    {
        change_map(c, run, w);
        c.rehash(static_cast<std::size_t>(1000 * run));
    }
};

struct unordered_set_of_int {
    template <class W> using type = typename W::template unordered_set<int>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &)
    {
        for (int i = 0; i < 300; i++)
            c.insert(200 * run + i);
        for (int i = 0; i < 50; i++)
            c.erase(200 * run + 5 * i);
    }
};

struct string_alone {
    template <class W> using type = typename W::string;
    template <class W>
    static void
    change(type<W> &c, int run, const W &)
    {
        for (int i = 0; i < 40 * run; i++)
            c += static_cast<char>('a' + (run + i) % 26);
        c.erase(0, 11);
        c.insert(5, "inserted");
    }
};

/* Containers in containers in containers: each takes its memory from the heap. */
struct nested {
    template <class W>
    using type = typename W::template map<
        typename W::string,
        typename W::template vector<typename W::template map<int, typename W::string>>>;
    template <class W>
    static void
    change(type<W> &c, int run, const W &w)
    {
        for (int i = 0; i < 12; i++) {
            auto &list = c[w.text(3 * run + i)];

            list.emplace_back();
            for (int k = 0; k < i; k++)
                list.back().emplace(k, w.text(k + run));
            if (list.size() > 2)
                list.erase(list.begin());
        }
        c.erase(c.begin());
    }
};

/* ---- One run ----------------------------------------------------------------------------------- */

/* Apply the changes of the first n runs to a model. */
template <class Case>
std::string
expected(int n)
{
    typename Case::template type<model> c;
    std::string text;

    for (int run = 1; run <= n; run++)
        Case::change(c, run, model());
    print(text, c);
    return text;
}

enum step {
    compare,
    change,
    finish
};

/* Do a step with one container. */
template <class Case, class W>
void
with(xac::heap &heap, const char *name, step what, int run)
{
    using T = typename Case::template type<W>;
    std::string text;

    switch (what) {
    case compare:
        if (run > 1 && heap.find<T>(name) == nullptr)
            fail(std::string(name) + " is not there");
        print(text, *heap.find_or_construct<T>(name));
        if (text != expected<Case>(run - 1))
            fail(std::string(name) + " before run " + std::to_string(run) + ": " + text);
        break;
    case change:
        Case::change(*heap.find<T>(name), run, W{heap});
        break;
    case finish:
        if (!heap.destroy<T>(name) || heap.find<T>(name) != nullptr)
            fail(std::string(name) + " is destroyed");
        break;
    }
}

/* Do a step with all of them; ret how many. */
int
with_all(xac::heap &heap, step what, int run)
{
    with<vector_of_int, ours>(heap, "vector<int>", what, run);
    with<vector_of_cells, ours>(heap, "vector<cell>", what, run);
    with<vector_of_strings, ours>(heap, "vector<string>", what, run);
    with<deque_of_strings, ours>(heap, "deque<string>", what, run);
    with<list_of_strings, ours>(heap, "list<string>", what, run);
    with<set_of_strings, ours>(heap, "set<string>", what, run);
    with<map_of_strings, ours>(heap, "map<string, int>", what, run);
    with<unordered_map_of_strings, ours>(heap, "unordered_map<string, int>", what, run);
    with<unordered_set_of_int, ours>(heap, "unordered_set<int>", what, run);
    with<string_alone, ours>(heap, "string", what, run);
    with<nested, ours>(heap, "map<string, vector<map<int, string>>>", what, run);
    with<vector_of_int, offset>(heap, "vector<int>, offsets", what, run);
    with<vector_of_cells, offset>(heap, "vector<cell>, offsets", what, run);
    return 13;
}

constexpr int boost_cases = 9;

int
with_all_of_boost([[maybe_unused]] xac::heap &heap, [[maybe_unused]] step what,
                  [[maybe_unused]] int run)
{
#if HAVE_BOOST
    with<vector_of_int, boosts>(heap, "boost vector<int>", what, run);
    with<vector_of_strings, boosts>(heap, "boost vector<string>", what, run);
    with<deque_of_strings, boosts>(heap, "boost deque<string>", what, run);
    with<list_of_strings, boosts>(heap, "boost list<string>", what, run);
    with<set_of_strings, boosts>(heap, "boost set<string>", what, run);
    with<map_of_strings, boosts>(heap, "boost map<string, int>", what, run);
    with<unordered_map_of_strings, boosts>(heap, "boost unordered_map", what, run);
    with<string_alone, boosts>(heap, "boost string", what, run);
    with<nested, boosts>(heap, "boost nested", what, run);
    return boost_cases;
#else
    return 0;
#endif
}

int
work(int run)
{
    xac::env env("db");
    xac::heap heap(env, "heap", 8 << 20);
    int cases = 0;

    env.transact([&] {
        cases = with_all(heap, compare, run) + with_all_of_boost(heap, compare, run);
        heap.totals();
    });
    if (run > runs) {
        env.transact([&] {
            with_all(heap, finish, run);
            with_all_of_boost(heap, finish, run);
        });
        if (env.query([&] { return heap.totals().allocations; }) != 0)
            fail("all memory is free in the end");
        std::printf(
            "check_containers: %d containers, %d skipped for want of Boost; %d runs "
            "killed\n",
            cases, HAVE_BOOST ? 0 : boost_cases, runs);
        return 0;
    }
    env.transact([&] {
        with_all(heap, change, run);
        with_all_of_boost(heap, change, run);
    });
    env.transact([&] {
        with_all(heap, change, 99);
        with_all_of_boost(heap, change, 99);
        kill(getpid(), SIGKILL);
    });
    return EXIT_FAILURE;
}

/* ret  the status of another process of this program */
int
start(const char *self, int run)
{
    std::string number = std::to_string(run);
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        execl(self, self, number.c_str(), static_cast<char *>(nullptr));
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("a child");
    return status;
}

} // namespace

int
main(int argc, char **argv)
{
    char dir[] = "/tmp/xac-test-XXXXXX";

    alarm(300); /* instead of a wait without end */
    if (argc > 1)
        return work(std::atoi(argv[1]));
    if (mkdtemp(dir) == nullptr || chdir(dir) != 0)
        fail("a directory");
    for (int run = 1; run <= runs; run++) {
        int status = start("/proc/self/exe", run);

        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            fail("run " + std::to_string(run) + " is killed");
    }
    int status = start("/proc/self/exe", runs + 1);
    if (chdir("/") != 0 || std::system((std::string("rm -rf ") + dir).c_str()) != 0)
        fail("remove");
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
