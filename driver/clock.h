#ifndef DRIVER_CLOCK_H
#define DRIVER_CLOCK_H

// Monotonic wall-clock milliseconds, for differences.
double clock_ms(void);

#endif
