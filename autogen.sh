#!/bin/sh
# SPDX-License-Identifier: MIT
# Make configure and Makefile.in out of configure.ac and Makefile.am.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux m4
exec autoreconf --install --force "$@"
