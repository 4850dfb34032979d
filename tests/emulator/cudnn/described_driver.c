/*
 * A libcuda.so.1 for machines without a driver. It has no device and accepts any code.
 *
 * cuDNN can plan for a device from its description. It compiles code for that device and loads the code by a driver;
 * this driver accepts the code and drops it. Nothing is ever carried out.
 */
#include <stddef.h>
#include <stdint.h>

enum { SUCCESS = 0, NO_DEVICE = 100 };

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuLibraryLoadData(void **library, const void *code, void *options, void **option_values,
                      unsigned option_count, void *library_options, void **library_values,
                      unsigned library_option_count);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device);

/* Symbols that the library looks up and does not call, or does without. */
#define WITHOUT(name)    \
    int name(void);      \
    int name(void)       \
    {                    \
        return NO_DEVICE; \
    }
WITHOUT(cuGetErrorName)
WITHOUT(cuGetErrorString)
WITHOUT(cuCtxGetCurrent)
WITHOUT(cuCtxGetLimit)
WITHOUT(cuCtxPopCurrent)
WITHOUT(cuCtxPushCurrent)
WITHOUT(cuStreamGetCtx)
WITHOUT(cuLinkCreate)
WITHOUT(cuLinkAddData)
WITHOUT(cuLinkComplete)
WITHOUT(cuLinkDestroy)
WITHOUT(cuLaunchKernel)
WITHOUT(cuLaunchKernelEx)
WITHOUT(cuLaunchCooperativeKernel)
WITHOUT(cuDeviceGet)
WITHOUT(cuLibraryLoadFromFile)
WITHOUT(cuKernelGetAttribute)
WITHOUT(cuOccupancyMaxPotentialClusterSize)

static int something;

int cuInit(unsigned flags)
{
    (void)flags;
    return NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}

int cuDeviceGetCount(int *count)
{
    *count = 0;
    return SUCCESS;
}

int cuLibraryLoadData(void **library, const void *code, void *options, void **option_values,
                      unsigned option_count, void *library_options, void **library_values,
                      unsigned library_option_count)
{
    (void)code, (void)options, (void)option_values, (void)option_count;
    (void)library_options, (void)library_values, (void)library_option_count;
    *library = &something;
    return SUCCESS;
}

int cuLibraryUnload(void *library)
{
    (void)library;
    return SUCCESS;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    (void)library, (void)name;
    *kernel = &something;
    return SUCCESS;
}

int cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
    (void)attribute, (void)value, (void)kernel, (void)device;
    return SUCCESS;
}
