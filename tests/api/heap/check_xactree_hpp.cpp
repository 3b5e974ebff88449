/* SPDX-License-Identifier: MIT */
/*
 * check_xactree_hpp.cpp -- the classes of xactree.hpp.
 *
 * GOAL    A tree agrees with a std::map whatever is done to it; a transaction that is left by an
 *         exception leaves no trace in it; exceptions of a visitor arrive; objects move, and end once.
 * METHOD  Random operations with keys of zero bytes and others, and values of none to many
 *         pieces.  The program is compiled with exceptions and, as check_xactree_hpp_plain, without.
 */
#include <xactree.hpp>

#include <map>
#include <random>

namespace {

using model = std::map<std::string, std::string>;

constexpr std::size_t bytes = std::size_t(16) << 20;

[[noreturn]] void
fail(const char *what)
{
    std::fprintf(stderr, "check_xactree_hpp: not so: %s; %s\n", what,
                 xactree_last_error());
    std::exit(EXIT_FAILURE);
}

void
must(bool is_so, const char *what)
{
    if (!is_so)
        fail(what);
}

std::string
random_key(std::mt19937 &rng)
{
    std::string key(rng() % 6, '\0');

    for (char &c : key)
        c = "\0\1\x7f\xff"[rng() % 4];
    return key;
}

std::string
random_value(std::mt19937 &rng)
{
    return std::string(rng() % 5 == 0 ? rng() % 2000 : rng() % 100, char(rng()));
}

/* The same entries forwards, backwards and by a visitor. */
void
same(xac::env &env, const xac::tree &t, const model &m)
{
    env.query([&] {
        auto it = m.begin();
        auto back = m.rbegin();
        xac::tree_cursor c(t), d(t);

        for (; c.next(); ++it)
            must(it != m.end() && c.key() == it->first && c.value() == it->second,
                 "next");
        must(it == m.end(), "all by next");
        for (; d.prev(); ++back)
            must(back != m.rend() && d.key() == back->first, "prev");
        must(back == m.rend(), "all by prev");
        it = m.begin();
        t.for_each([&](std::string_view key, std::string_view value) {
            must(it != m.end() && key == it->first && value == it->second, "visit");
            ++it;
        });
        must(it == m.end(), "all visited");
        must(t.count() == m.size() && t.verify().entries == m.size(), "count");
    });
}

void
step(xac::tree &t, model &m, std::mt19937 &rng)
{
    std::string key = random_key(rng), value = random_value(rng), to = random_key(rng);
    bool had = m.count(key) != 0;

    switch (rng() % 8) {
    case 0:
        must(t.erase(key) == had, "erase");
        m.erase(key);
        break;
    case 1:
        must(t.add(key, value) == !had, "add");
        m.emplace(key, value);
        break;
    case 2:
        must(t.replace(key, value) == had, "replace");
        if (had)
            m[key] = value;
        break;
    case 3: {
        auto found = t.find(key);
        must(found.has_value() == had && t.contains(key) == had, "find");
        must(!had || *found == m[key], "the value");
        break;
    }
    case 4: {
        xac::tree_cursor c(t);
        auto it = m.lower_bound(key);
        must(c.seek(key) == (it != m.end()), "seek");
        must(it == m.end() || c.key() == it->first, "the key");
        break;
    }
    case 5:
        if (rng() % 20 == 0 && key < to) {
            auto from = m.lower_bound(key), end = m.lower_bound(to);
            auto n = static_cast<std::uint64_t>(std::distance(from, end));
            must(t.count(key, to) == n && t.erase(key, to) == n, "erase a range");
            m.erase(from, end);
        }
        break;
    default:
        t.put(key, value);
        m[key] = value;
    }
}

void
operations_agree_with_map(xac::env &env, void *base)
{
    xac::tree_config how;
    how.key_max = 8;
    xac::tree t(env, base, bytes, how);
    std::mt19937 rng(20050101);
    model m;

    for (int i = 0; i < 600; i++) {
        if (i % 3 == 0) {
            step(t, m, rng);
            continue;
        }
        model before = m;
        int rc = env.try_transact([&] {
            m = before;
            for (unsigned n = rng() % 8; n > 0; n--)
                step(t, m, rng);
            return i % 5 == 0 ? EDOM : 0; /* rolls back */
        });
        must(rc == (i % 5 == 0 ? EDOM : 0), "the code");
        if (rc != 0)
            m = before;
        if (i % 20 == 0)
            same(env, t, m);
    }
    same(env, t, m);
    must(m.size() > 100, "many entries");

    xac::tree moved(std::move(t)), other;
    must(t.get() == nullptr, "moved away"); // NOLINT: looked at on purpose
    other = std::move(moved);
    same(env, other, m);
    must(other.try_open(env, base, bytes) == XAC_EALREADY, "open once");
    other = xac::tree(env, base, bytes); /* there: the configuration does not matter */
    same(env, other, m);
    other.erase(std::nullopt, std::nullopt);
    must(other.count() == 0, "empty");
}

void
a_visitor_may_stop(xac::env &env, void *base)
{
    xac::tree t(env, base, bytes);
    int n = 0;

    for (const char *key : {"a", "b", "c", "d"})
        t.put(key, key);
    t.for_each([&](std::string_view, std::string_view) { return ++n < 2; });
    must(n == 2, "stopped");
    n = 0;
    t.for_each([&](std::string_view key, std::string_view) { n += key[0]; }, "b", "d");
    must(n == 'b' + 'c', "the range");
}

#ifdef __cpp_exceptions
template <class F>
int
code_of(F &&fn)
{
    try {
        fn();
    } catch (const xac::error &e) {
        must(e.what()[0] != '\0', "words");
        return e.code();
    }
    return 0;
}

void
exceptions_roll_back(xac::env &env, void *base)
{
    xac::tree t(env, base, bytes);
    std::string word;

    try {
        env.transact([&] {
            t.put("a", "other");
            throw 17;
        });
    } catch (int number) {
        must(number == 17, "the exception");
    }
    must(t.find("a") == "a", "rolled back");
    try {
        t.for_each([&](std::string_view key, std::string_view) {
            word = key;
            throw std::string("thrown by the visitor");
        });
    } catch (const std::string &words) {
        must(words == "thrown by the visitor" && word == "a", "a visitor's exception");
        word.clear();
    }
    must(word.empty(), "it arrived");
    must(code_of([&] { t.put(std::string(1000, 'k'), ""); }) == EINVAL, "a long key");
    must(code_of([&] { xac::tree_cursor(t).key(); }) == ENOENT, "a cursor nowhere");
    must(code_of([&] { xac::tree none(env, nullptr, bytes); }) == EINVAL, "no address");
    must(code_of([&] { env.query([&] { t.put("a", ""); }); }) == XAC_EINQUERY,
         "in a query");
}
#endif

} // namespace

int
main()
{
    char dir[] = "/tmp/xac-test-XXXXXX";

    alarm(60); /* instead of a wait without end */
    must(mkdtemp(dir) != nullptr && chdir(dir) == 0, "a directory");
    {
        xac::options how;
        how.flags = XAC_NONDURABLE;
        xac::env env("db", how);
        xac::mapping<char> m(env, "input.db", bytes);

        operations_agree_with_map(env, m.data());
        a_visitor_may_stop(env, m.data());
#ifdef __cpp_exceptions
        exceptions_roll_back(env, m.data());
#endif
    }
    must(chdir("/") == 0 && std::system((std::string("rm -rf ") + dir).c_str()) == 0,
         "remove");
    std::puts("check_xactree_hpp: 3 groups");
    return 0;
}
