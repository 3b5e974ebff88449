# SPDX-License-Identifier: MIT
# For gdb: faults are how libxac works, and the program is to have them.  See doc/debugging.md.
handle SIGSEGV nostop noprint pass
handle SIGBUS nostop noprint pass
