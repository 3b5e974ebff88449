/* SPDX-License-Identifier: MIT */
/*
 * xac_error.hpp -- the exceptions of xac.hpp, which includes it.
 *
 * Without exceptions (-fno-exceptions) what would be thrown is printed, and the program stops.
 */
#ifndef XAC_ERROR_HPP
#define XAC_ERROR_HPP

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "xac.h"

namespace xac {

/* A call of the library failed.  code() is an errno value or XAC_E...; some codes of xac_end() say that the transaction
   has committed, as XAC_ENOTDURABLE, or that nobody knows yet, as XAC_EUNCERTAIN. */
class error : public std::runtime_error {
  public:
    error(int code, const std::string &text) : std::runtime_error(text), code_(code)
    {
    }
    int
    code() const noexcept
    {
        return code_;
    }

  private:
    int code_;
};

/* The transaction was rolled back at each attempt, as often or as long as its limits allow; or its
   function has called xac_abort_in(), after which there is no other attempt. */
class conflict : public error {
  public:
    conflict() : error(XAC_ABORTED, xac_strerror(XAC_ABORTED))
    {
    }
};

/* An object in a heap has another type or layout than the program asks for.  Nothing has changed. */
class layout_error : public error {
  public:
    explicit layout_error(const std::string &text) : error(XAC_ELAYOUT, text)
    {
    }
};

namespace detail {

/* What `code` means, and what the library says of it, which may end with that. */
inline std::string
describe(int code)
{
    const std::string meaning = xac_strerror(code), words = xac_last_error();
    if (words.empty())
        return meaning;
    if (words.size() > meaning.size()
        && words.compare(words.size() - meaning.size(), meaning.size(), meaning) == 0)
        return words;
    return meaning + ": " + words;
}

} // namespace detail

/* Throw what `code` means; 0 is no error. */
inline void
check(int code)
{
    if (code == 0)
        return;
#ifdef __cpp_exceptions
    if (code == XAC_ABORTED)
        throw conflict();
    throw error(code, detail::describe(code));
#else
    std::fprintf(stderr, "xac: %s\n", detail::describe(code).c_str());
    std::abort();
#endif
}

/* Throw what a function of the allocator has failed with: std::bad_alloc if there is no room. */
[[noreturn]] inline void
throw_memory(int code)
{
#ifdef __cpp_exceptions
    if (code == ENOMEM)
        throw std::bad_alloc();
#endif
    check(code);
    std::abort();
}

/* Throw an error that the library has no text for. */
[[noreturn]] inline void
throw_error(int code, const std::string &text)
{
#ifdef __cpp_exceptions
    if (code == XAC_ELAYOUT)
        throw layout_error(text);
    throw error(code, text);
#else
    std::fprintf(stderr, "xac: %s: %s\n", xac_strerror(code), text.c_str());
    std::abort();
#endif
}

} // namespace xac

#endif /* XAC_ERROR_HPP */
