/* SPDX-License-Identifier: MIT */
/*
 * xac_api.h -- how the other headers mark what they declare; they include it.
 */
#ifndef XAC_API_PUBLIC_H
#define XAC_API_PUBLIC_H

/* A function that the library exports, or a variable. */
#if defined(__GNUC__)
# define XAC_API __attribute__((visibility("default")))
#else
# define XAC_API
#endif

/* A constant that goes away with the next name of the library (doc/compatibility.md).  A
   program that has to use some defines XAC_NO_DEPRECATED before it includes a header. */
#if defined(__GNUC__) && !defined(XAC_NO_DEPRECATED)
# define XAC_DEPRECATED __attribute__((deprecated))
#else
# define XAC_DEPRECATED
#endif

#endif /* XAC_API_PUBLIC_H */
