# SPDX-License-Identifier: GPL-2.0
#
# gnuplot -e "data='FILE'; title='TEXT'": cost above the disk, engine by engine,
# as an SVG on standard output. A line of the data is a workload.
set terminal svg size 960,480 font "sans,12" background "white"
set title title
set ylabel "instructions per 4 KiB above the block device"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set boxwidth 0.9
set yrange [0:*]
set grid ytics
set key outside bottom center horizontal
set datafile missing "-"
set datafile separator "\t"
set xtics noenhanced
plot for [i=2:6] data using i:xtic(1) title columnheader(i)
