# SPDX-License-Identifier: MIT
#
# contention.gp -- the figure of doc/policies.md.
#
#   xbench contention --json > contention.json
#   gnuplot -c bench/contention/contention.gp contention.json policies.svg
#
# Four panels, short and long transactions by 2 and 8 processes: committed transactions
# per second, median of slices, over the number of hot pages.
json = ARG1
policies = "oldest-wins self-abort selfish youngest-wins optimistic serial"

# Pages and medians of one curve.
number = ": \\([0-9.e+]*\\)"
select(policy, length, procs) = sprintf("< sed -n 's/.*\"policy\": \"%s\", \"length\": \"%s\", \"processes\": %d, \"pages\"%s, \"commits_per_second_median\"%s,.*/\\1 \\2/p' '%s'", policy, length, procs, number, number, json)

set terminal svg size 860,640 font "sans-serif,12" background "white"
set output ARG2
set multiplot layout 2,2
set logscale x 2
set logscale y 10
set xrange [0.7:6000]
set yrange [100:1000000]
set xtics (1, 8, 64, 512, 4096)
set xlabel "hot pages"
set ylabel "commits per second"
set format y "10^{%T}"
set grid xtics ytics
set pointsize 0.8
set linetype 5 linecolor rgb "black"
do for [length in "short long"] {
    do for [procs in "2 8"] {
        set title sprintf("%s transactions, %s processes", length, procs)
        if (length eq "short" && procs eq "2") { set key bottom left } else { unset key }
        plot for [i = 1:words(policies)] select(word(policies, i), length, int(procs)) \
            using 1:2 with linespoints linetype i linewidth 2 title word(policies, i)
    }
}
unset multiplot
