/* Instructions and stack of calls on a Cortex-M4F in QEMU.
 *
 * With -icount shift=0 QEMU lets every instruction take a nanosecond. SysTick counts down at the
 * board's 25 MHz, once in 40 instructions; many calls make that exact. The stack is filled with a
 * pattern before a call, and looked at after it.
 */
#include <stdint.h>
#include <stdio.h>

#define INSTRUCTIONS_PER_TICK 40u
#define PAINTED 0x80000u /* bytes */
#define PATTERN 0xA5A5A5A5u

static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010u;

static uint32_t start_ticks(void)
{
    systick[0] = 0;
    systick[1] = 0xFFFFFFu;
    systick[2] = 0;
    systick[0] = 5;
    return systick[2];
}

static __attribute__((noinline)) uint32_t paint_and_call(void (*call)(int), int sample)
{
    volatile uint32_t *place;
    uint32_t k;
    __asm volatile("mov %0, sp" : "=r"(place));
    --place;
    for (k = 0; k < PAINTED / 4; ++k) place[-(int32_t)k] = PATTERN;
    call(sample);
    for (k = PAINTED / 4 - 1; k > 0 && place[-(int32_t)k] == PATTERN; --k) continue;
    return 4 * (k + 1);
}

/* Prints name, instructions per call less those of an empty one, and bytes of stack. */
static void count(const char *name, void (*call)(int), void (*empty)(int), int samples, int turns)
{
    uint32_t begin, ticks, idle, stack = 0;
    int k, s;
    for (s = 0; s < samples; ++s) {
        const uint32_t used = paint_and_call(call, s);
        if (used > stack) stack = used;
    }
    begin = start_ticks();
    for (k = 0; k < turns; ++k)
        for (s = 0; s < samples; ++s) call(s);
    ticks = begin - systick[2];
    begin = start_ticks();
    for (k = 0; k < turns; ++k)
        for (s = 0; s < samples; ++s) empty(s);
    idle = begin - systick[2];
    printf("%s %lu %lu\n", name,
           (unsigned long)((uint64_t)(ticks - idle) * INSTRUCTIONS_PER_TICK /
                           (uint32_t)(turns * samples)),
           (unsigned long)stack);
}
