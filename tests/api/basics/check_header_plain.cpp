/* SPDX-License-Identifier: MIT */
/*
 * check_header_plain.cpp -- check_header.cpp with the short names left out.
 */
#define XAC_NO_SHORT_NAMES
#include "check_header.cpp"
