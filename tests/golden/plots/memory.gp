# Made by spillway 0.2.0.
set encoding utf8
set terminal svg enhanced size 1200,524 font 'sans-serif,12' background '#ffffff'
set output 'memory.svg'
unset key
set label '{/:Bold by-hand on two-gpus}' at screen 0.01333, screen 0.9542 left font ',16' tc rgb '#1f2328' front
set label 'makespan: predicted 1.38 s, measured 1.46 s (error -5.9 %)' at screen 0.01333, screen 0.91221 left font ',12' tc rgb '#59636e' front noenhanced
set lmargin at screen 0.1083333333
set rmargin at screen 0.8416666667
set tmargin at screen 0.8167938931
set bmargin at screen 0.1030534351
set yrange [374:0]
set xrange [0:1.6]
set border 1 lc rgb '#8c959f'
unset ytics
set format x '%.10g'
set xtics out nomirror scale 0.5 font ',11' tc rgb '#59636e'
set grid xtics lt 1 lw 1 lc rgb '#e4e7ea' back
set label 'time (s)' at screen 0.84167, screen 0.02672 right font ',11' tc rgb '#59636e' front noenhanced
set object rect from screen 0.10833, screen 0.81679 to screen 0.84167, screen 0.61832 fc rgb '#f3f4f6' fs solid noborder behind
set label '{/:Bold gpu0}' at screen 0.01333, screen 0.71756 left font ',12' tc rgb '#1f2328' front
set label '0' at screen 0.10333, screen 0.61832 right font ',11' tc rgb '#59636e' front noenhanced
set label '8 GiB' at screen 0.10333, screen 0.81679 right font ',11' tc rgb '#59636e' front noenhanced
set label 'capacity 8 GiB' at screen 0.85, screen 0.80057 left font ',11' tc rgb '#1f2328' front noenhanced
set arrow from screen 0.10833, screen 0.81679 to screen 0.84167, screen 0.81679 nohead lw 1.2 lc rgb '#1f2328' dt (8,5) front
set label 'predicted peak 7 GiB' at screen 0.85, screen 0.7584 left font ',11' tc rgb '#0171d0' front noenhanced
set label 'measured peak 7 GiB' at screen 0.85, screen 0.72595 left font ',11' tc rgb '#c2410c' front noenhanced
set object rect from screen 0.10833, screen 0.5687 to screen 0.84167, screen 0.37023 fc rgb '#f3f4f6' fs solid noborder behind
set label '{/:Bold gpu1}' at screen 0.01333, screen 0.46947 left font ',12' tc rgb '#1f2328' front
set label '0' at screen 0.10333, screen 0.37023 right font ',11' tc rgb '#59636e' front noenhanced
set label '8 GiB' at screen 0.10333, screen 0.5687 right font ',11' tc rgb '#59636e' front noenhanced
set label 'capacity 8 GiB' at screen 0.85, screen 0.55248 left font ',11' tc rgb '#1f2328' front noenhanced
set arrow from screen 0.10833, screen 0.5687 to screen 0.84167, screen 0.5687 nohead lw 1.2 lc rgb '#1f2328' dt (8,5) front
set label 'predicted peak 3 GiB' at screen 0.85, screen 0.51031 left font ',11' tc rgb '#0171d0' front noenhanced
set label 'measured peak 3 GiB' at screen 0.85, screen 0.47786 left font ',11' tc rgb '#c2410c' front noenhanced
set object rect from screen 0.10833, screen 0.32061 to screen 0.84167, screen 0.12214 fc rgb '#f3f4f6' fs solid noborder behind
set label '{/:Bold host}' at screen 0.01333, screen 0.22137 left font ',12' tc rgb '#1f2328' front
set label '0' at screen 0.10333, screen 0.12214 right font ',11' tc rgb '#59636e' front noenhanced
set label '64 GiB' at screen 0.10333, screen 0.32061 right font ',11' tc rgb '#59636e' front noenhanced
set label 'capacity 64 GiB' at screen 0.85, screen 0.30439 left font ',11' tc rgb '#1f2328' front noenhanced
set arrow from screen 0.10833, screen 0.32061 to screen 0.84167, screen 0.32061 nohead lw 1.2 lc rgb '#1f2328' dt (8,5) front
set label 'predicted peak 21 GiB' at screen 0.85, screen 0.26221 left font ',11' tc rgb '#0171d0' front noenhanced
set label 'measured peak 21 GiB' at screen 0.85, screen 0.22977 left font ',11' tc rgb '#c2410c' front noenhanced
set arrow from screen 0.76719, screen 0.84733 to screen 0.76719, screen 0.10305 nohead lw 1.2 lc rgb '#1f2328' dt (8,5) front
set label 'predicted end' at screen 0.76385, screen 0.83969 right font ',11' tc rgb '#1f2328' front noenhanced
set arrow from screen 0.80837, screen 0.84733 to screen 0.80837, screen 0.10305 nohead lw 1.3 lc rgb '#1f2328' dt solid front
set label 'measured end' at screen 0.8117, screen 0.83969 left font ',11' tc rgb '#1f2328' front noenhanced
# time, pixels
$predicted0 << END
0 104
0.125 104
0.125 52
0.5 52
0.5 13
1.4375 13
1.4375 104
1.4375 104
1.4375 104
END
# time, pixels
$measured0 << END
0 104
0.1328125 104
0.1328125 52
0.53125 52
0.53125 13
1.52734375 13
1.52734375 104
1.52734375 104
1.52734375 104
END
# time, pixels
$predicted1 << END
0 234
0.1875 234
0.1875 195
0.6875 195
0.6875 234
1.4375 234
1.4375 234
END
# time, pixels
$measured1 << END
0 234
0.19921875 234
0.19921875 195
0.73046875 195
0.73046875 234
1.52734375 234
1.52734375 234
END
# time, pixels
$predicted2 << END
0 364
0.0625 364
0.0625 329.875
1.4375 329.875
1.4375 364
END
# time, pixels
$measured2 << END
0 364
0.06640625 364
0.06640625 329.875
1.52734375 329.875
1.52734375 364
END
plot $predicted0 with filledcurves y=104 fs solid noborder fc rgb '#d9e9f9', $predicted0 with lines lw 1.3 lc rgb '#0171d0', $measured0 with lines lw 1.3 lc rgb '#c2410c', $predicted1 with filledcurves y=234 fs solid noborder fc rgb '#d9e9f9', $predicted1 with lines lw 1.3 lc rgb '#0171d0', $measured1 with lines lw 1.3 lc rgb '#c2410c', $predicted2 with filledcurves y=364 fs solid noborder fc rgb '#d9e9f9', $predicted2 with lines lw 1.3 lc rgb '#0171d0', $measured2 with lines lw 1.3 lc rgb '#c2410c'
