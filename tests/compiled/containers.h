/* SPDX-License-Identifier: MIT */
/*
 * containers.h -- container libraries, unchanged, behind one interface: see containers.c.
 */
#ifndef XAC_TEST_CONTAINERS_H
#define XAC_TEST_CONTAINERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PADDING 200 /* bytes of an element besides, so that few lie in one page */

/* What is told of each element. */
typedef void tell_element(uint64_t key, uint64_t value, void *arg);

/* A container of keys with values, in memory of take(). */
struct container {
    const char *name;
    void *(*make)(void);
    void (*insert)(void *all, uint64_t key, uint64_t value); /* which is not there yet */
    void (*erase)(void *all, uint64_t key);                  /* which is there         */
    uint64_t *(*find)(void *all, uint64_t key);              /* ret the value; or NULL */
    void (*walk)(void *all, tell_element *tell, void *arg);
};

/* Ended by a NULL name. */
extern const struct container containers_c[], containers_cc[];

/* Memory of the segment, take_apart() with no other in its pages; never NULL. */
void *take(size_t size);
void *take_apart(size_t size);
void give(void *p);

/* Stop the program unless it is so. */
#define must(is) ((is) ? (void)0 : stop_at(__FILE__, __LINE__, #is))
void stop_at(const char *file, int line, const char *what);

#ifdef __cplusplus
}
#endif

#endif /* XAC_TEST_CONTAINERS_H */
