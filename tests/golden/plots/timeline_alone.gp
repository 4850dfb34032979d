# Made by spillway 0.2.0.
set encoding utf8
set terminal svg enhanced size 800,278 font 'sans-serif,12' background '#ffffff'
set output 'timeline_alone.svg'
unset key
set label '{/:Bold it''s a\_\{title\}}' at screen 0.02, screen 0.91367 left font ',16' tc rgb '#1f2328' front
set label 'measured makespan 1.46 s' at screen 0.02, screen 0.83453 left font ',12' tc rgb '#59636e' front noenhanced
set lmargin at screen 0.105
set rmargin at screen 0.7625
set tmargin at screen 0.7122302158
set bmargin at screen 0.1942446043
set yrange [144:0]
set xrange [0.25:1.52734375]
set border 1 lc rgb '#8c959f'
unset ytics
set format x '%.10g'
set xtics out nomirror scale 0.5 font ',11' tc rgb '#59636e'
set grid xtics lt 1 lw 1 lc rgb '#e4e7ea' back
set label 'time (s)' at screen 0.7625, screen 0.05036 right font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.105, screen 0.71223 to screen 0.7625, screen 0.60352 fc rgb '#f3f4f6' fs solid noborder behind
set label '{/:Bold gpu0}' at screen 0.02, screen 0.65787 left font ',12' tc rgb '#1f2328' front
set object rect from screen 0.105, screen 0.59632 to screen 0.7625, screen 0.56009 fc rgb '#f3f4f6' fs solid noborder behind
set label 'h2d' at screen 0.09875, screen 0.5782 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.105, screen 0.55289 to screen 0.7625, screen 0.51665 fc rgb '#f3f4f6' fs solid noborder behind
set label 'd2h' at screen 0.09875, screen 0.53477 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.105, screen 0.44471 to screen 0.7625, screen 0.336 fc rgb '#f3f4f6' fs solid noborder behind
set label '{/:Bold gpu1}' at screen 0.02, screen 0.39035 left font ',12' tc rgb '#1f2328' front
set object rect from screen 0.105, screen 0.3288 to screen 0.7625, screen 0.29257 fc rgb '#f3f4f6' fs solid noborder behind
set label 'h2d' at screen 0.09875, screen 0.31068 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.105, screen 0.28537 to screen 0.7625, screen 0.24913 fc rgb '#f3f4f6' fs solid noborder behind
set label 'd2h' at screen 0.09875, screen 0.26725 right font ',9' tc rgb '#59636e' front noenhanced
set object rect from screen 0.7875, screen 0.70324 to screen 0.80375, screen 0.65647 fc rgb '#89befc' fs solid noborder behind
set object rect from screen 0.805, screen 0.70324 to screen 0.82125, screen 0.65647 fc rgb '#4597e6' fs solid noborder behind
set object rect from screen 0.8225, screen 0.70324 to screen 0.83875, screen 0.65647 fc rgb '#0171d0' fs solid noborder behind
set label 'alpha' at screen 0.8475, screen 0.67986 left font ',12' tc rgb '#1f2328' front noenhanced
set object rect from screen 0.7875, screen 0.63849 to screen 0.80375, screen 0.59173 fc rgb '#d8df8c' fs solid noborder behind
set object rect from screen 0.805, screen 0.63849 to screen 0.82125, screen 0.59173 fc rgb '#b5bc47' fs solid noborder behind
set object rect from screen 0.8225, screen 0.63849 to screen 0.83875, screen 0.59173 fc rgb '#939a03' fs solid noborder behind
set label 'beta' at screen 0.8475, screen 0.61511 left font ',12' tc rgb '#1f2328' front noenhanced
set object rect from screen 0.7875, screen 0.53777 to screen 0.80375, screen 0.49101 fc rgb '#c9ced4' fs solid noborder behind
set label 'forward' at screen 0.8125, screen 0.51439 left font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.7875, screen 0.47302 to screen 0.80375, screen 0.42626 fc rgb '#979ea7' fs solid noborder behind
set label 'loss (last shard)' at screen 0.8125, screen 0.44964 left font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.7875, screen 0.40827 to screen 0.80375, screen 0.36151 fc rgb '#656d76' fs solid noborder behind
set label 'backward' at screen 0.8125, screen 0.38489 left font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.7875, screen 0.33453 to screen 0.80375, screen 0.30576 fc rgb '#656d76' fs solid noborder behind
set label 'copy' at screen 0.8125, screen 0.32014 left font ',11' tc rgb '#59636e' front noenhanced
set label '3' at screen 0.79125, screen 0.2554 left font ',11' tc rgb '#59636e' front noenhanced
set label 'number of the shard' at screen 0.8125, screen 0.2554 left font ',11' tc rgb '#59636e' front noenhanced
set arrow from screen 0.7625, screen 0.76978 to screen 0.7625, screen 0.19424 nohead lw 1.3 lc rgb '#1f2328' dt solid front
set label 'measured end' at screen 0.7675, screen 0.7554 left font ',11' tc rgb '#1f2328' front noenhanced
# from, to, top, bottom, color
$boxes << END
0.25 0.2638036924 32.22222222 42.2962963 0x0171d0
0.265625 0.4630224424 0 30.22222222 0x89befc
0.265625 0.3966161924 32.22222222 42.2962963 0x0171d0
0.46484375 0.9278661924 0 30.22222222 0x4597e6
0.9296875 1.060678692 44.2962963 54.37037037 0x0171d0
0.99609375 1.326303692 0 30.22222222 0x0171d0
0.53125 0.6622411924 32.22222222 42.2962963 0x0171d0
1.328125 1.525522442 44.2962963 54.37037037 0x0171d0
0.33203125 0.7286474424 74.37037037 104.5925926 0xd8df8c
0.25 0.3302099424 106.5925926 116.6666667 0x939a03
END
# at, middle, shard, color
$shards << END
0.365234375 15.11111111 0 0x1f2328
0.697265625 15.11111111 1 0x1f2328
1.162109375 15.11111111 0 0xffffff
0.53125 89.48148148 0 0x1f2328
END
plot $boxes using (($1+$2)/2):(($3+$4)/2):1:2:3:4:5 with boxxyerror fs solid noborder lc rgb variable, $shards using 1:2:(sprintf('%d', $3)):4 with labels font ',11' tc rgb variable
