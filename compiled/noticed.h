/* SPDX-License-Identifier: MIT */
/*
 * noticed.h -- functions of the C library that announce their accesses (libxac-compiled).
 *
 * WHAT      xac_noticed_f() announces to libxac what f() loads and stores, then calls f().  xac-cc has
 *           programs call them in the places of the functions of the C library; see its manual.
 *           A program need not include this header: xac-cc does.
 * SYSTEM CALLS  Bytes that the kernel is to load or store are announced as well, so a buffer may
 *           lie in a segment.  Without this such a call fails with EFAULT.
 * ERRORS    Those of f().  What stops the program at a trap stops it here.
 * NOT HERE  Declarations of the C library: this header is read before the program's first line, when
 *           nothing may be included yet.
 */
#ifndef XAC_COMPILED_NOTICED_H
#define XAC_COMPILED_NOTICED_H

#ifdef __cplusplus
extern "C" {
#endif

void *xac_noticed_memcpy(void *to, const void *from, __SIZE_TYPE__ n);
void *xac_noticed_memmove(void *to, const void *from, __SIZE_TYPE__ n);
void *xac_noticed_mempcpy(void *to, const void *from, __SIZE_TYPE__ n);
void *xac_noticed_memset(void *to, int byte, __SIZE_TYPE__ n);
void xac_noticed_bzero(void *to, __SIZE_TYPE__ n);
char *xac_noticed_strcpy(char *to, const char *from);
char *xac_noticed_stpcpy(char *to, const char *from);
char *xac_noticed_strncpy(char *to, const char *from, __SIZE_TYPE__ n);
char *xac_noticed_stpncpy(char *to, const char *from, __SIZE_TYPE__ n);
char *xac_noticed_strcat(char *to, const char *from);
char *xac_noticed_strncat(char *to, const char *from, __SIZE_TYPE__ n);
int xac_noticed_sprintf(char *to, const char *format, ...);
int xac_noticed_snprintf(char *to, __SIZE_TYPE__ n, const char *format, ...);
int xac_noticed_vsprintf(char *to, const char *format, __builtin_va_list arguments);
int xac_noticed_vsnprintf(char *to, __SIZE_TYPE__ n, const char *format,
                          __builtin_va_list arguments);

#ifdef __cplusplus
}
#endif

/* By these names a compiler knows the functions even with -fno-builtin, and stores by itself. */
#define __builtin_memcpy    xac_noticed_memcpy
#define __builtin_memmove   xac_noticed_memmove
#define __builtin_mempcpy   xac_noticed_mempcpy
#define __builtin_memset    xac_noticed_memset
#define __builtin_bzero     xac_noticed_bzero
#define __builtin_strcpy    xac_noticed_strcpy
#define __builtin_stpcpy    xac_noticed_stpcpy
#define __builtin_strncpy   xac_noticed_strncpy
#define __builtin_stpncpy   xac_noticed_stpncpy
#define __builtin_strcat    xac_noticed_strcat
#define __builtin_strncat   xac_noticed_strncat
#define __builtin_sprintf   xac_noticed_sprintf
#define __builtin_snprintf  xac_noticed_snprintf
#define __builtin_vsprintf  xac_noticed_vsprintf
#define __builtin_vsnprintf xac_noticed_vsnprintf

#endif /* XAC_COMPILED_NOTICED_H */
