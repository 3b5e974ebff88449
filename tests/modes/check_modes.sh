#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_modes.sh -- every pair of options: one_mode for each row that pairs.py makes.
set -eu
pairs=$(cd "$(dirname "$0")" && pwd)/pairs.py
program=$(cd "${top_builddir:-.}" && pwd)/tests/modes/one_mode

python3 -B "$pairs" --self-test
exec python3 -B "$pairs" --run "$program"
