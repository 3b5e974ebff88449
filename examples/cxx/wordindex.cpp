/* SPDX-License-Identifier: MIT */
/*
 * wordindex.cpp -- an index of words in text files: a map of vectors in a heap.
 *
 * Each file is read in one transaction, so that it is in the index as a whole or not at all,
 * whenever the program is killed.  A file that is there already is passed over.
 *
 * usage: wordindex add FILE...    read files; prints the name of each when it is committed
 *        wordindex find WORD      where the word is
 *        wordindex check          counts all over again, and compares
 */
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <tuple>

#include <xac_containers.hpp>

namespace {

struct place {
    std::uint32_t file; /* index in `files` */
    std::uint32_t line; /* from 1           */
};

/* What the heap holds, under one name.  Change xac_name with the members. */
struct index {
    static constexpr const char *xac_name = "wordindex/1";
    using allocator_type = xac::allocator<char>;

    explicit index(const allocator_type &heap) : words(heap), files(heap)
    {
    }

    xac::map<xac::string, xac::vector<place>> words;
    xac::vector<xac::string> files;
    std::uint64_t places = 0;
    using xac_members = std::tuple<decltype(words), decltype(files)>;
};

/* The words of a line, in lower case. */
template <class F>
void
each_word(const std::string &line, F &&fn)
{
    std::string word;

    for (std::size_t i = 0; i <= line.size(); i++) {
        auto c = i < line.size() ? static_cast<unsigned char>(line[i]) : ' ';

        if (std::isalnum(c) != 0) {
            word += static_cast<char>(std::tolower(c));
        } else if (!word.empty()) {
            fn(word);
            word.clear();
        }
    }
}

bool
has_file(const index &all, const std::string &name)
{
    for (const auto &file : all.files) {
        if (std::string_view(file) == name)
            return true;
    }
    return false;
}

void
add(xac::env &env, xac::heap &heap, const std::string &name)
{
    bool is_new = env.transact([&] {
        auto &all = *heap.find_or_construct<index>("index");
        std::ifstream in(name);
        std::string line;

        if (!in)
            throw std::runtime_error("cannot read " + name);
        if (has_file(all, name))
            return false;
        auto file = static_cast<std::uint32_t>(all.files.size());
        all.files.emplace_back(name.c_str());
        for (std::uint32_t number = 1; std::getline(in, line); number++) {
            each_word(line, [&](const std::string &word) {
                auto found = all.words.find(std::string_view(word));

                if (found == all.words.end())
                    found =
                        all.words.try_emplace(xac::string(word.c_str(), heap.allocator()))
                            .first;
                found->second.push_back({file, number});
                all.places++;
            });
        }
        return true;
    });
    std::cout << (is_new ? "added " : "known ") << name
              << std::endl; /* committed: say so */
}

void
find(xac::env &env, xac::heap &heap, const std::string &word)
{
    std::string found = env.query([&] {
        const auto *all = heap.find<index>("index");
        std::string text;

        if (all == nullptr)
            return text;
        auto at = all->words.find(std::string_view(word));
        if (at == all->words.end())
            return text;
        for (const place &p : at->second)
            text +=
                std::string(all->files.at(p.file)) + ":" + std::to_string(p.line) + "\n";
        return text;
    });
    std::cout << found;
}

/* Returns a copy: what a query returns is used after its end. */
bool
check(xac::env &env, xac::heap &heap)
{
    struct counts {
        std::size_t files = 0, words = 0;
        std::uint64_t places = 0, counted = 0;
        bool is_sound = true;
    };
    auto c = env.query([&] {
        const auto *all = heap.find<index>("index");
        counts n;

        heap.totals(); /* the allocator checks the heap */
        if (all == nullptr)
            return n;
        n.files = all->files.size();
        n.words = all->words.size();
        n.places = all->places;
        for (const auto &[word, places] : all->words) {
            n.counted += places.size();
            for (const place &p : places)
                n.is_sound = n.is_sound && p.file < n.files;
        }
        return n;
    });
    std::cout << c.files << " files, " << c.words << " words, " << c.places << " places, "
              << c.counted << " counted\n";
    return c.is_sound && c.places == c.counted;
}

} // namespace

int
main(int argc, char **argv)
{
    std::string command = argc > 1 ? argv[1] : "";

    try {
        xac::env env("wordindex.db");
        xac::heap heap(env, "wordindex.heap", 64 << 20);

        if (command == "add") {
            for (int i = 2; i < argc; i++)
                add(env, heap, argv[i]);
        } else if (command == "find" && argc == 3) {
            find(env, heap, argv[2]);
        } else if (command == "check") {
            return check(env, heap) ? 0 : 1;
        } else {
            std::cerr << "usage: wordindex add FILE... | find WORD | check\n";
            return 2;
        }
    } catch (const std::exception &e) {
        std::cerr << "wordindex: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
