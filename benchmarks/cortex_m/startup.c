/* Start of a program on a Cortex-M4F in QEMU: vectors, floating-point unit, semihosting. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t stack_top;
extern void initialise_monitor_handles(void);
int main(void);

void _init(void) {}
void _fini(void) {}

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: full access to the unit */
    __asm volatile("dsb\n\tisb");
    initialise_monitor_handles();
    exit(main());
}

static void fault(void)
{
    exit(99);
}

typedef void (*Vector)(void);
__attribute__((section(".vectors"), used)) static const Vector vectors[16] = {
    (Vector)&stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0,
    fault, fault,
};
