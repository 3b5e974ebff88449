/* SPDX-License-Identifier: MIT */
/*
 * unwind.c -- C++ exceptions inside of transactions.
 *
 * An exception that is thrown inside belongs to the transaction, like allocated memory, until a
 * handler has caught it or the transaction has committed.  libstdc++ is used if the program has it.
 */
#include <config.h>

#include <stddef.h>
#include <unwind.h>

#include "itm.h"

/* The beginning of what libstdc++ has for each thread: fixed by the C++ ABI. */
struct globals {
    void *caught;
    unsigned n_uncaught;
};

void *__cxa_allocate_exception(size_t size) __attribute__((weak));
void __cxa_free_exception(void *object) __attribute__((weak));
void __cxa_throw(void *object, void *type, void (*destroy)(void *))
    __attribute__((weak, noreturn));
void *__cxa_begin_catch(void *exception) __attribute__((weak));
void __cxa_end_catch(void) __attribute__((weak));
void __cxa_tm_cleanup(void *unthrown, void *in_flight, unsigned n_caught)
    __attribute__((weak));
struct globals *__cxa_get_globals(void) __attribute__((weak));

unsigned
xac_itm_uncaught(void)
{
    return __cxa_get_globals != NULL ? __cxa_get_globals()->n_uncaught : 0;
}

void
xac_itm_unwind_back(struct xac_itm *t, const struct xac_itm_mark *mark)
{
    xac_itm_assert(t->n_catches >= mark->n_catches);
    if (t->n_catches > mark->n_catches)
        __cxa_tm_cleanup(NULL, NULL, t->n_catches - mark->n_catches);
    t->n_catches = mark->n_catches;
    if (__cxa_get_globals != NULL)
        __cxa_get_globals()->n_uncaught = mark->n_uncaught;
}

XAC_ITM_API void *_ITM_cxa_allocate_exception(size_t size);
void *
_ITM_cxa_allocate_exception(size_t size)
{
    void *object = __cxa_allocate_exception(size);

    xac_itm_act(xac_itm_now, &(struct xac_itm_action){.kind = XAC_ITM_ALLOCATED,
                                                      .fn = __cxa_free_exception,
                                                      .arg = object});
    return object;
}

XAC_ITM_API void _ITM_cxa_free_exception(void *object);
void
_ITM_cxa_free_exception(void *object)
{
    xac_itm_act_forget(xac_itm_now, object);
    __cxa_free_exception(object);
}

XAC_ITM_API _Noreturn void _ITM_cxa_throw(void *object, void *type,
                                          void (*destroy)(void *));
void
_ITM_cxa_throw(void *object, void *type, void (*destroy)(void *))
{
    __cxa_throw(object, type, destroy);
}

XAC_ITM_API void *_ITM_cxa_begin_catch(void *exception);
void *
_ITM_cxa_begin_catch(void *exception)
{
    /* The object lies behind the unwinder's part. */
    xac_itm_act_forget(xac_itm_now, (struct _Unwind_Exception *)exception + 1);
    xac_itm_now->n_catches++;
    return __cxa_begin_catch(exception);
}

XAC_ITM_API void _ITM_cxa_end_catch(void);
void
_ITM_cxa_end_catch(void)
{
    xac_itm_now->n_catches--;
    __cxa_end_catch();
}
