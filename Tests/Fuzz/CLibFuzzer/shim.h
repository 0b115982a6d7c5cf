#include <stddef.h>
#include <stdint.h>

// libFuzzer is linked in by -sanitize=fuzzer, and comes without a header.
int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*check)(const uint8_t *start, size_t count));
