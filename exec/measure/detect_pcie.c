/* See detect.h. */
#include "exec/measure/detect.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the number at the start of a file; 0 if it cannot be read. */
static double number_in(const char *root, const char *address, const char *file)
{
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/%s", root, address, file);
    FILE *in = fopen(path, "re");
    if (!in) return 0;
    const bool some = fgets(text, sizeof text, in) != NULL;
    fclose(in);
    return some ? strtod(text, NULL) : 0;
}

/* 2.5, 5, 8, 16 and 32 GT/s are generations 1 to 5. */
static uint32_t generation_of(double transfers)
{
    static const double least[] = {2.5, 5, 8, 16, 32, 64};
    uint32_t generation = 0;
    while (generation < sizeof least / sizeof *least && transfers >= least[generation]) generation++;
    return generation;
}

static double lesser(double a, double b)
{
    return b > 0 && (b < a || !(a > 0)) ? b : a;
}

void detect_pcie(const char *root, const char *address, uint32_t *generation, uint32_t *lanes)
{
    const double speed = number_in(root, address, "max_link_speed");
    const double port = number_in(root, address, "../max_link_speed");
    const double width = number_in(root, address, "current_link_width");
    *generation = generation_of(lesser(speed, port));
    *lanes = *generation > 0 && width >= 1 && width <= 32 ? (uint32_t)width : 0;
    if (*lanes == 0) *generation = 0;
}
