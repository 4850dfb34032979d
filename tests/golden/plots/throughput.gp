# Made by spillway 0.2.0.
set encoding utf8
set terminal svg enhanced size 1000,250 font 'sans-serif,12' background '#ffffff'
set output 'throughput.svg'
unset key
set label '{/:Bold Throughput by policy}' at screen 0.016, screen 0.904 left font ',16' tc rgb '#1f2328' front
set object rect from screen 0.016, screen 0.84 to screen 0.028, screen 0.792 fc rgb '#0171d0' fs solid noborder behind
set label 'predicted' at screen 0.034, screen 0.816 left font ',12' tc rgb '#59636e' front noenhanced
set object rect from screen 0.11696, screen 0.84 to screen 0.12896, screen 0.792 fc rgb '#c2410c' fs solid noborder behind
set label 'measured' at screen 0.13496, screen 0.816 left font ',12' tc rgb '#59636e' front noenhanced
set lmargin at screen 0.14704
set rmargin at screen 0.96
set tmargin at screen 0.608
set bmargin at screen 0.216
set yrange [98:0]
set xrange [0:12810.3871]
set border 1 lc rgb '#8c959f'
unset ytics
set format x '%.10g'
set xtics out nomirror scale 0.5 font ',11' tc rgb '#59636e'
set grid xtics lt 1 lw 1 lc rgb '#e4e7ea' back
set label 'tokens per second' at screen 0.96, screen 0.056 right font ',11' tc rgb '#59636e' front noenhanced
set label 'sharded-lrtf' at screen 0.13704, screen 0.476 right font ',12' tc rgb '#1f2328' front noenhanced
set label '12 034 tokens/s, 6 min 53 s' at screen 0.90273, screen 0.516 right font ',11' tc rgb '#ffffff' front noenhanced
set label '11 511 tokens/s, 7 min 11 s' at screen 0.86953, screen 0.436 right font ',11' tc rgb '#ffffff' front noenhanced
set label 'one''s own_policy' at screen 0.13704, screen 0.308 right font ',12' tc rgb '#1f2328' front noenhanced
set label '2 068 tokens/s, 40 min' at screen 0.2863, screen 0.308 left font ',11' tc rgb '#1f2328' front noenhanced
set arrow from screen 0.96, screen 0.64 to screen 0.96, screen 0.216 nohead lw 1.2 lc rgb '#1f2328' dt (8,5) front
set label 'no plan exceeds 12 810 tokens/s (lower bound on the makespan: 6 min 28 s)' at screen 0.964, screen 0.676 right font ',11' tc rgb '#1f2328' front noenhanced
# tokens per second, top, bottom, color
$bars << END
12034 14 32 0x0171d0
11510.8 34 52 0xc2410c
2068.34375 66 84 0x0171d0
END
plot $bars using ($1/2):(($2+$3)/2):(0):1:2:3:4 with boxxyerror fs solid noborder lc rgb variable
