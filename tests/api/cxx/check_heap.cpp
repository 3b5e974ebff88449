/* SPDX-License-Identifier: MIT */
/*
 * check_heap.cpp -- objects with names, their tags, allocators, pointers that are distances, hash.
 *
 * GOAL    A name leads to its object; another layout of it is refused in words, and nothing changes;
 *         an object whose constructor throws leaves nothing; memory that cannot be had is reported;
 *         threads with views of their own work on one container; hashes are what they always were.
 * METHOD  One process; types that stand for earlier and later versions of one another.  The program is
 *         compiled with exceptions and, as check_heap_plain, without.
 */
#include <xac_containers.hpp>

#include <array>
#include <csignal>
#include <cstring>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace {

int checks;

void
must(bool is_so, const char *what)
{
    checks++;
    if (is_so)
        return;
    std::fprintf(stderr, "check_heap: not so: %s; %s\n", what, xac_last_error());
    std::exit(EXIT_FAILURE);
}

std::uint64_t
allocations(xac::env &env, const xac::heap &heap)
{
    return env.query([&] { return heap.totals().allocations; });
}

/* ---- Names ------------------------------------------------------------------------------------ */

struct point {
    int x, y;
};

void
names_lead_to_objects(xac::env &env, xac::heap &heap)
{
    env.query([&] { must(heap.find<int>("zero") == nullptr, "a heap without names"); });
    env.transact([&] {
        must(*heap.find_or_construct<int>("zero") == 0, "made without arguments");
        must(*heap.find_or_construct<int>("seven", 7) == 7, "made with one");
        must(*heap.find_or_construct<int>("seven", 8) == 7, "found");
        must(heap.find_or_construct<point>("point", 1, 2)->y == 2, "an aggregate");
        for (int i = 0; i < 500; i++)
            *heap.find_or_construct<int>("many " + std::to_string(i)) = i;
    });
    env.query([&] {
        for (int i = 0; i < 500; i++)
            must(*heap.find<int>("many " + std::to_string(i)) == i, "one of many");
        must(heap.find<int>("many") == nullptr, "no such name");
        must(*heap.find<int>("seven") == 7, "a query finds");
    });
    env.transact([&] {
        for (int i = 0; i < 500; i += 2)
            must(heap.destroy<int>("many " + std::to_string(i)), "destroyed");
        must(!heap.destroy<int>("many 0"), "destroyed once");
    });
    env.query([&] {
        for (int i = 0; i < 500; i++) {
            const int *found = heap.find<int>("many " + std::to_string(i));
            must(i % 2 == 0 ? found == nullptr : *found == i, "the others are there");
        }
        int *out = nullptr;
        must(heap.try_find("", &out) == EINVAL, "no name");
        must(heap.try_find(std::string(256, 'n'), &out) == EINVAL, "too long a name");
        must(heap.try_find(std::string(255, 'n'), &out) == 0 && out == nullptr, "none");
    });
    int rc = env.try_transact([&] {
        heap.destroy<int>("seven");
        heap.find_or_construct<int>("rolled back");
        return 1;
    });
    must(rc == 1, "rolled back");
    env.query([&] {
        must(heap.find<int>("seven") != nullptr, "not destroyed");
        must(heap.find<int>("rolled back") == nullptr, "not made");
    });
}

/* ---- Layouts ---------------------------------------------------------------------------------- */

namespace earlier {
struct order {
    static constexpr const char *xac_name = "order";
    int price;
    int count;
};
struct plain {
    int price;
};
struct book : xac::map<int, order> {
    static constexpr const char *xac_name = "book";
    using xac::map<int, order>::map;
};
struct shop {
    static constexpr const char *xac_name = "shop";
    using allocator_type = xac::allocator<char>;
    explicit shop(const allocator_type &a) : orders(a)
    {
    }
    xac::vector<order> orders;
    using xac_members = std::tuple<decltype(orders)>;
};
} // namespace earlier

namespace later {
struct order {
    static constexpr const char *xac_name = "order";
    int price;
    int count;
    int owner;
};
struct renamed {
    static constexpr const char *xac_name = "order/2";
    int count;
    int price;
};
struct alignas(16) aligned_order {
    static constexpr const char *xac_name = "order";
    int price;
    int count;
};
struct book : xac::map<int, order> {
    static constexpr const char *xac_name = "book";
    using xac::map<int, order>::map;
};
struct shop {
    static constexpr const char *xac_name = "shop";
    using allocator_type = xac::allocator<char>;
    explicit shop(const allocator_type &a) : orders(a)
    {
    }
    xac::vector<order> orders;
    using xac_members = std::tuple<decltype(orders)>;
};
struct same {
    static constexpr const char *xac_name = "order";
    int price;
    int count;
};
} // namespace later

template <class T>
void
must_refuse(xac::env &env, xac::heap &heap, const char *name, const char *what)
{
    env.transact([&] {
        T *out = nullptr;
        must(heap.try_find(name, &out) == XAC_ELAYOUT && out == nullptr, what);
    });
#ifdef __cpp_exceptions
    auto refused = [&](auto &&call) {
        try {
            env.transact(call);
        } catch (const xac::layout_error &e) {
            return e.code() == XAC_ELAYOUT && std::strstr(e.what(), name) != nullptr
                   && std::strstr(e.what(), " bytes") != nullptr;
        }
        return false;
    };
    must(refused([&] { heap.find<T>(name); }), what);
    must(refused([&] { heap.find_or_construct<T>(name); }), what);
    must(refused([&] { heap.destroy<T>(name); }), what);
#endif
}

void
other_layouts_are_refused(xac::env &env, xac::heap &heap)
{
    using later_map = xac::map<int, later::order>;

    env.transact([&] {
        heap.find_or_construct<earlier::order>("order", 3, 4);
        heap.find_or_construct<xac::map<int, earlier::order>>("orders");
        heap.find_or_construct<earlier::book>("book");
        heap.find_or_construct<earlier::shop>("shop");
        heap.find_or_construct<earlier::plain>("plain", 5);
        heap.find_or_construct<int>("number", 6);
        heap.find_or_construct<std::array<int, 4>>("array");
    });
    must_refuse<later::order>(env, heap, "order", "a new member");
    must_refuse<later::renamed>(env, heap, "order", "a new name of the type");
    must_refuse<later::aligned_order>(env, heap, "order", "another alignment");
    must_refuse<later_map>(env, heap, "orders", "a new member of an element");
    static_assert(sizeof(earlier::book) == sizeof(later::book), "a map has one size");
    must_refuse<later::book>(env, heap, "book",
                             "a new member of an element, the same name");
    must_refuse<later::shop>(env, heap, "shop", "a new member of an element of a member");
    must_refuse<unsigned>(env, heap, "number", "another kind of number");
    must_refuse<float>(env, heap, "number", "another kind of number");
    must_refuse<point>(env, heap, "plain", "another type");
    must_refuse<std::array<unsigned, 4>>(env, heap, "array", "other elements");
    must_refuse<xac::set<int>>(env, heap, "orders", "another container");
    env.query([&] {
        must(heap.find<later::same>("order")->count == 4, "the same layout and name");
        must(heap.find<earlier::plain>("plain")->price == 5, "nothing has changed");
        must(heap.find<int>("number") != nullptr, "nothing has changed");
    });

    xac::type_tag elsewhere = xac::tag_of<int>();
    elsewhere.abi = "aarch64/8/1234 libc++/1";
    env.query([&] {
        xac::detail::heap_names names(env.get(), heap.base());
        void *object = nullptr;
        std::string why;
        must(names.find("number", elsewhere, &object, &why) == XAC_ELAYOUT
                 && why.find("libc++") != why.npos,
             "another processor and library");
    });

    /* What the tag cannot tell: it is in doc/cpp.md. */
    static_assert(xac::tag_of<earlier::order>().layout
                      == xac::tag_of<later::renamed>().layout,
                  "members that have changed places have one layout");
}

/* A program in C may use the root area itself: that is not written over. */
void
root_area_of_others_is_left_alone(xac::env &env)
{
    xac::heap heap(env, "used", 1 << 20);
    int *out = nullptr;

    env.transact([&] {
        static_cast<char *>(xac_root_in(env.get(), heap.base()))[200] = 1;
        must(heap.try_find("x", &out) == EINVAL, "a root area in use");
    });
    env.transact([&] {
        static_cast<char *>(xac_root_in(env.get(), heap.base()))[200] = 0;
        heap.find_or_construct<int>("x");
        static_cast<char *>(xac_root_in(env.get(), heap.base()))[8] = 2;
        must(heap.try_find("x", &out) == XAC_EVERSION,
             "a later version of the directory");
    });
}

/* Zeros where the file has been cut are not taken for the end of a list. */
void
cut_file_is_noticed()
{
    {
        xac::env env("cut");
        xac::heap heap(env, "cut/heap", 1 << 20);

        env.transact([&] { heap.find_or_construct<int>("x", 1); });
    }
    must(truncate("cut/heap", sysconf(_SC_PAGESIZE)) == 0, "cut to the page of the root area");
    xac::env env("cut");
    xac::heap heap(env, "cut/heap", 1 << 20);
    env.query([&] {
        int *out = nullptr;
        must(heap.try_find("x", &out) == XAC_EDAMAGED, "an object that is gone");
    });
}

/* ---- Errors ------------------------------------------------------------------------------------- */

#ifdef __cpp_exceptions
struct throws {
    using allocator_type = xac::allocator<char>;
    explicit throws(const allocator_type &a)
        : text("a text that is long enough for memory", a)
    {
        throw std::runtime_error("thrown");
    }
    xac::string text;
};

/* What a function throws: the code of xac::error, ENOMEM for std::bad_alloc, 1 for others. */
template <class F>
int
thrown(F &&fn)
{
    try {
        fn();
    } catch (const xac::error &e) {
        return e.code();
    } catch (const std::bad_alloc &) {
        return ENOMEM;
    } catch (const std::runtime_error &) {
        return 1;
    }
    return 0;
}

void
errors_are_thrown(xac::env &env, xac::heap &heap)
{
    std::uint64_t before = allocations(env, heap);
    int stack = 0;

    env.transact([&] {
        must(thrown([&] { heap.find_or_construct<throws>("t"); }) == 1,
             "the constructor's exception");
        must(heap.find<throws>("t") == nullptr, "no object");
    });
    must(allocations(env, heap) == before, "what was made is gone, even if all commits");
    auto too_large = [&] {
        heap.find_or_construct<xac::vector<char>>("v")->resize(100 << 20);
    };
    must(thrown([&] { env.transact(too_large); }) == ENOMEM, "no room");
    must(allocations(env, heap) == before, "rolled back");
    must(thrown([&] { heap.find<int>("seven"); }) == EPERM, "outside of transactions");
    must(thrown([&] { env.transact([&] { heap.find<int>(""); }); }) == EINVAL, "no name");
    auto make = [&] { heap.find_or_construct<int>("new"); };
    must(thrown([&] { env.query(make); }) == EPERM, "made in a query");
    auto huge = [&] { heap.allocator<int>().allocate(SIZE_MAX / 2); };
    must(thrown([&] { env.transact(huge); }) == ENOMEM, "more than there are bytes");
    auto elsewhere = [&] { xac::allocator<int>(&stack).allocate(1); };
    must(thrown([&] { env.transact(elsewhere); }) == EINVAL,
         "an allocator without a heap");
}
#endif

/* Memory that is freed twice would damage the heap: the program ends, the transaction with it. */
void
wrong_free_ends_the_program(xac::env &env, xac::heap &heap)
{
    std::uint64_t before = allocations(env, heap);
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        if (std::freopen("/dev/null", "w", stderr) == nullptr)
            _exit(1);
        env.transact([&] {
            auto a = heap.allocator<int>();
            int *p = a.allocate(1);

            a.deallocate(p, 1);
            a.deallocate(p, 1);
        });
        _exit(0);
    }
    must(child > 0 && waitpid(child, &status, 0) == child, "a child");
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "freed twice");
    must(allocations(env, heap) == before, "rolled back");
}

void
heaps_move(xac::env &env)
{
    xac::heap a(env, "moved", 100000);
    void *base = a.base();

    must(a.size() == 100000, "its size");
    xac::heap b(std::move(a));
    must(a.base() == nullptr && b.base() == base, "it moves");
    env.transact([&] { b.find_or_construct<int>("n", 9); });
    must(b.try_map(env, "other", 4096) == XAC_EMAPPED, "it maps one file");
    must(b.try_unmap() == 0 && b.base() == nullptr && b.try_unmap() == 0, "it ends once");
    must(b.try_map(env, "moved", 3 << 20) == 0, "it grows");
    env.transact([&] {
        must(*b.find<int>("n") == 9, "the object is there");
        auto *v = b.find_or_construct<xac::vector<char>>("large");
        v->resize(2 << 20);
    });
    a = std::move(b);
    must(a.base() != nullptr && b.base() == nullptr, "it moves by assignment");
}

/* ---- Threads with views ------------------------------------------------------------------------- */

struct node {
    int value = 0;
    xac::offset_ptr<node> next;
};

/* Each thread has its view, its transactions, and other addresses; the list is one. */
void
threads_share_by_offsets(xac::env &env, xac::heap &heap)
{
    using numbers = std::vector<int, xac::offset_allocator<int>>;
    constexpr int each = 300;
    auto add = [&](int first) {
        xac::heap_view view(heap);

        must(view.base() != heap.base(), "another address");
#ifdef __cpp_exceptions
        auto shared = [&] { heap.allocator<int>().allocate(1); };
        must(thrown([&] { env.transact(shared); }) == EINVAL,
             "ordinary pointers are refused");
#endif
        for (int i = first; i < first + each; i++) {
            env.transact([&] {
                auto *head = view.find_or_construct<xac::offset_ptr<node>>("list");
                auto a = view.offset_allocator<node>();
                auto made = a.allocate(1);

                a.construct(made.get());
                made->value = i;
                made->next = *head;
                *head = made;
                view.find_or_construct<numbers>("numbers")->push_back(i);
            });
        }
    };
    std::thread one(add, 0), other(add, each);

    one.join();
    other.join();
    env.query([&] {
        std::array<int, 2 * each> seen{};
        int n = 0;

        for (auto p = *heap.find<xac::offset_ptr<node>>("list"); p != nullptr;
             p = p->next) {
            seen.at(static_cast<std::size_t>(p->value))++;
            n++;
        }
        for (int value : *heap.find<numbers>("numbers"))
            seen.at(static_cast<std::size_t>(value)) += 10;
        must(n == 2 * each, "all nodes");
        for (int count : seen)
            must(count == 11, "each once");
    });
}

void
offset_pointers_are_pointers()
{
    int cells[4] = {1, 2, 3, 4};
    xac::offset_ptr<int> p = cells;
    xac::offset_ptr<int> copy(p);
    xac::offset_ptr<const int> constant = p;
    xac::offset_ptr<void> any = p;
    xac::offset_ptr<int> none;

    must(*p == 1 && p[3] == 4 && *(p + 2) == 3 && *(2 + p) == 3, "access");
    must(copy == p && constant == p && any.get() == cells, "copies");
    must(static_cast<xac::offset_ptr<int>>(any) == p, "back from void");
    must(!none && none == nullptr && nullptr == none && p != nullptr && p, "null");
    p += 3;
    must(p - copy == 3 && p > copy && copy < p && copy <= p && p >= copy,
         "distance, order");
    must(*p-- == 4 && *p == 3 && *--p == 2 && *p++ == 2 && *++p == 4, "steps");
    copy = none;
    must(copy == nullptr && copy.get() == nullptr, "null is copied");
    copy = p - 1;
    must(*copy == 3, "assigned");
    auto second = std::pointer_traits<xac::offset_ptr<int>>::pointer_to(cells[1]);
    must(second.get() == cells + 1, "pointer_to");
}

/* ---- Hash ---------------------------------------------------------------------------------------- */

void
hashes_never_change()
{
    /* XXH3's own test vector for no bytes. */
    must(xac_hash("", 0) == UINT64_C(0x2d06800538d394c2), "XXH3");
    const char *text = "a text whose hash is the same in each run";
    std::string heaped(text);
    std::string_view view(text);
    must(xac::hash<std::string>{}(heaped) == xac::hash<std::string_view>{}(view),
         "of strings of all kinds");
    must(xac::hash<std::string>{}("") == UINT64_C(0x2d06800538d394c2), "of no text");
    must(xac::hash<int>{}(0) == UINT64_C(0xe220a8397b1dcdaf), "splitmix64's first value");
    must(xac::hash<int>{}(1) != xac::hash<int>{}(2), "numbers differ");
    must(xac::hash<double>{}(0.0) == xac::hash<double>{}(-0.0), "equal numbers");
    must(xac::hash<float>{}(1.5F) == xac::hash<double>{}(1.5), "of any width");
    must(xac::hash<std::pair<int, int>>{}({1, 2})
             != xac::hash<std::pair<int, int>>{}({2, 1}),
         "the order counts");
    must(xac::hash<std::pair<int, int>>{}({1, 2})
             == xac::hash<std::tuple<int, int>>{}({1, 2}),
         "pairs and tuples");
}

} // namespace

int
main()
{
    char dir[] = "/tmp/xac-test-XXXXXX";

    alarm(120); /* instead of a wait without end */
    must(mkdtemp(dir) != nullptr && chdir(dir) == 0, "a directory");
    offset_pointers_are_pointers();
    hashes_never_change();
    cut_file_is_noticed();
    {
        xac::options how;
        how.flags = XAC_NONDURABLE;
        xac::env env("heaps", how);
        xac::heap heap(env, "heap", 8 << 20);

        names_lead_to_objects(env, heap);
        other_layouts_are_refused(env, heap);
        root_area_of_others_is_left_alone(env);
#ifdef __cpp_exceptions
        errors_are_thrown(env, heap);
#endif
        wrong_free_ends_the_program(env, heap);
        heaps_move(env);
        threads_share_by_offsets(env, heap);
    }
    must(chdir("/") == 0 && std::system((std::string("rm -rf ") + dir).c_str()) == 0,
         "remove");
    std::printf("check_heap: %d checks\n", checks);
    return 0;
}
