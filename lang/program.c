#include "lang/program.h"

const char *stream_name(uint32_t stream)
{
    static const char *const rings[DMA_RINGS] = {"DMA.load",  "DMA.store",    "DMA.chip",
                                                 "DMA.hbm",   "DMA.software", "DMA.scalar",
                                                 "DMA.other", "DMA.group"};
    return stream < STREAM_RING0 ? engine_name((engine_id)stream) : rings[stream - STREAM_RING0];
}
