/* SPDX-License-Identifier: MIT */
/*
 * probe.h -- static probes (USDT), at which bpftrace, perf or SystemTap can look while a program runs.
 *
 * WHAT      A probe is one `nop` instruction and a note in the section .note.stapsdt, which says where the
 *           arguments are.  Without <sys/sdt.h>, or with configure --disable-probes, it is nothing.
 * NOT HERE  Examples: doc/probes.md, which has the arguments of each.  They are part of the interface
 *           for people: a new argument comes last.
 * HANDLER   Yes: nothing is called.
 */
#ifndef XAC_PROBE_H
#define XAC_PROBE_H

#ifdef HAVE_PROBES
# include <sys/sdt.h>
# define XAC_PROBE2(name, a, b)    DTRACE_PROBE2(libxac, name, a, b)
# define XAC_PROBE3(name, a, b, c) DTRACE_PROBE3(libxac, name, a, b, c)
#else
# define XAC_PROBE2(name, a, b)    ((void)sizeof(a), (void)sizeof(b))
# define XAC_PROBE3(name, a, b, c) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))
#endif

#endif /* XAC_PROBE_H */
