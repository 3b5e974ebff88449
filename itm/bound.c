/* SPDX-License-Identifier: MIT */
/*
 * bound.c -- does the dynamic linker find this library's names, or those of gcc's own?
 *
 * WHAT      A warning, at the time when the library is loaded.  A module that dlopen() has loaded looks for
 *           its names in the program and its libraries first.  If gcc's libitm is one of those, the
 *           module's blocks run there, not over libxac, though the module names libxac-itm.
 * NOT HERE  Programs that do not load libxac-itm at all: an access of a block is one outside of a
 *           transaction, and libxac stops them.  Programs with the static library: what they call is
 *           what the linker has found.
 */
#include <config.h>

#ifdef PIC

# include <dlfcn.h>
# include <unistd.h>

static const char warning[] =
    "libxac-itm: warning: gcc's own libitm stands before it, so language transactions run there, "
    "not on segments\n"
    "libxac-itm: hint: link the program without libitm, or with libxac-itm, too "
    "(pkg-config --libs libxac-itm; -Wl,--no-as-needed if it has no block itself); or open the "
    "module with RTLD_DEEPBIND\n";

/* look -- where does a name lead that both libraries have? */
__attribute__((constructor)) static void
look(void)
{
    void *found = dlsym(RTLD_DEFAULT, "_ITM_beginTransaction");
    Dl_info theirs, ours;

    if (found != NULL && dladdr(found, &theirs) != 0 && dladdr(warning, &ours) != 0
        && theirs.dli_fbase != ours.dli_fbase) {
        ssize_t n = write(STDERR_FILENO, warning, sizeof warning - 1);

        (void)n;
    }
}

#endif
