# Made by spillway 0.2.0.
set encoding utf8
set terminal svg enhanced size 1200,356 font 'sans-serif,12' background '#ffffff'
set output 'timeline.svg'
unset key
set label '{/:Bold by-hand on two-gpus}' at screen 0.01333, screen 0.93258 left font ',16' tc rgb '#1f2328' front
set label 'makespan: predicted 1.38 s, measured 1.46 s (error -5.9 %)' at screen 0.01333, screen 0.87079 left font ',12' tc rgb '#59636e' front noenhanced
set lmargin at screen 0.1083333333
set rmargin at screen 0.8416666667
set tmargin at screen 0.7752808989
set bmargin at screen 0.1516853933
set yrange [222:0]
set xrange [0:1.6]
set border 1 lc rgb '#8c959f'
unset ytics
set format x '%.10g'
set xtics out nomirror scale 0.5 font ',11' tc rgb '#59636e'
set grid xtics lt 1 lw 1 lc rgb '#e4e7ea' back
set label 'time (s)' at screen 0.84167, screen 0.03933 right font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.77528 to screen 0.84167, screen 0.70787 fc rgb '#f3f4f6' fs solid noborder behind
set label '{/:Bold gpu0}' at screen 0.01333, screen 0.74157 left font ',12' tc rgb '#1f2328' front
set label 'predicted' at screen 0.10417, screen 0.74157 right font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.70225 to screen 0.84167, screen 0.67978 fc rgb '#f3f4f6' fs solid noborder behind
set label 'h2d' at screen 0.10417, screen 0.69101 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.67416 to screen 0.84167, screen 0.65169 fc rgb '#f3f4f6' fs solid noborder behind
set label 'd2h' at screen 0.10417, screen 0.66292 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.6264 to screen 0.84167, screen 0.55899 fc rgb '#f3f4f6' fs solid noborder behind
set label 'measured' at screen 0.10417, screen 0.5927 right font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.55337 to screen 0.84167, screen 0.5309 fc rgb '#f3f4f6' fs solid noborder behind
set label 'h2d' at screen 0.10417, screen 0.54213 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.52528 to screen 0.84167, screen 0.50281 fc rgb '#f3f4f6' fs solid noborder behind
set label 'd2h' at screen 0.10417, screen 0.51404 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.44663 to screen 0.84167, screen 0.37921 fc rgb '#f3f4f6' fs solid noborder behind
set label '{/:Bold gpu1}' at screen 0.01333, screen 0.41292 left font ',12' tc rgb '#1f2328' front
set label 'predicted' at screen 0.10417, screen 0.41292 right font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.3736 to screen 0.84167, screen 0.35112 fc rgb '#f3f4f6' fs solid noborder behind
set label 'h2d' at screen 0.10417, screen 0.36236 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.34551 to screen 0.84167, screen 0.32303 fc rgb '#f3f4f6' fs solid noborder behind
set label 'd2h' at screen 0.10417, screen 0.33427 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.29775 to screen 0.84167, screen 0.23034 fc rgb '#f3f4f6' fs solid noborder behind
set label 'measured' at screen 0.10417, screen 0.26404 right font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.22472 to screen 0.84167, screen 0.20225 fc rgb '#f3f4f6' fs solid noborder behind
set label 'h2d' at screen 0.10417, screen 0.21348 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.19663 to screen 0.84167, screen 0.17416 fc rgb '#f3f4f6' fs solid noborder behind
set label 'd2h' at screen 0.10417, screen 0.18539 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.85833, screen 0.76826 to screen 0.86917, screen 0.73174 fc rgb '#89befc' fs solid noborder behind
set object rect from screen 0.87, screen 0.76826 to screen 0.88083, screen 0.73174 fc rgb '#4597e6' fs solid noborder behind
set object rect from screen 0.88167, screen 0.76826 to screen 0.8925, screen 0.73174 fc rgb '#0171d0' fs solid noborder behind
set label 'alpha' at screen 0.89833, screen 0.75 left font ',12' tc rgb '#1f2328' front noenhanced
set object rect from screen 0.85833, screen 0.7177 to screen 0.86917, screen 0.68118 fc rgb '#d8df8c' fs solid noborder behind
set object rect from screen 0.87, screen 0.7177 to screen 0.88083, screen 0.68118 fc rgb '#b5bc47' fs solid noborder behind
set object rect from screen 0.88167, screen 0.7177 to screen 0.8925, screen 0.68118 fc rgb '#939a03' fs solid noborder behind
set label 'beta' at screen 0.89833, screen 0.69944 left font ',12' tc rgb '#1f2328' front noenhanced
set object rect from screen 0.85833, screen 0.63904 to screen 0.86917, screen 0.60253 fc rgb '#c9ced4' fs solid noborder behind
set label 'forward' at screen 0.875, screen 0.62079 left font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.85833, screen 0.58848 to screen 0.86917, screen 0.55197 fc rgb '#979ea7' fs solid noborder behind
set label 'loss (last shard)' at screen 0.875, screen 0.57022 left font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.85833, screen 0.53792 to screen 0.86917, screen 0.5014 fc rgb '#656d76' fs solid noborder behind
set label 'backward' at screen 0.875, screen 0.51966 left font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.85833, screen 0.48034 to screen 0.86917, screen 0.45787 fc rgb '#656d76' fs solid noborder behind
set label 'copy' at screen 0.875, screen 0.4691 left font ',11' tc rgb '#59636e' front noenhanced
set label '3' at screen 0.86083, screen 0.41854 left font ',11' tc rgb '#59636e' front noenhanced
set label 'number of the shard' at screen 0.875, screen 0.41854 left font ',11' tc rgb '#59636e' front noenhanced
set arrow from screen 0.76719, screen 0.82022 to screen 0.76719, screen 0.15169 nohead lw 1.2 lc rgb '#1f2328' dt (8,5) front
set label 'predicted end' at screen 0.76385, screen 0.80899 right font ',11' tc rgb '#1f2328' front noenhanced
set arrow from screen 0.80837, screen 0.82022 to screen 0.80837, screen 0.15169 nohead lw 1.3 lc rgb '#1f2328' dt solid front
set label 'measured end' at screen 0.8117, screen 0.80899 left font ',11' tc rgb '#1f2328' front noenhanced
# from, to, top, bottom, color
$boxes << END
0.125 0.2486363636 26 34 0x0171d0
0.25 0.4361363636 0 24 0x89befc
0.25 0.3736363636 26 34 0x0171d0
0.4375 0.8736363636 0 24 0x4597e6
0.875 0.9986363636 36 44 0x0171d0
0.9375 1.248636364 0 24 0x0171d0
0.5 0.6236363636 26 34 0x0171d0
1.25 1.436136364 36 44 0x0171d0
0.3125 0.6861363636 117 141 0xd8df8c
0.1875 0.3111363636 143 151 0x939a03
0.1328125 0.2642613636 79 87 0x0171d0
0.265625 0.4634801136 53 77 0x89befc
0.265625 0.3970738636 79 87 0x0171d0
0.46484375 0.9283238636 53 77 0x4597e6
0.9296875 1.061136364 89 97 0x0171d0
0.99609375 1.326761364 53 77 0x0171d0
0.53125 0.6626988636 79 87 0x0171d0
1.328125 1.525980114 89 97 0x0171d0
0.33203125 0.7291051136 170 194 0xd8df8c
0.19921875 0.3306676136 196 204 0x939a03
END
# at, middle, shard, color
$shards << END
0.34375 12 0 0x1f2328
0.65625 12 1 0x1f2328
1.09375 12 0 0xffffff
0.5 129 0 0x1f2328
0.365234375 65 0 0x1f2328
0.697265625 65 1 0x1f2328
1.162109375 65 0 0xffffff
0.53125 182 0 0x1f2328
END
plot $boxes using (($1+$2)/2):(($3+$4)/2):1:2:3:4:5 with boxxyerror fs solid noborder lc rgb variable, $shards using 1:2:(sprintf('%d', $3)):4 with labels font ',11' tc rgb variable
