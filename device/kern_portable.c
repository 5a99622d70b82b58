#define KERN_TABLE kernels_portable
#define KERN_NAME  "portable"
#define KERN_LEVEL 0
#include "device/kern.inc"
