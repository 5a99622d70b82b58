#include "bindgen_many.c"
