/* Start of a program on a Cortex-M4F: switch the floating-point unit on, then run newlib's start. */

extern void _start(void);
extern char stack_top;

__attribute__((noreturn)) static void reset(void)
{
    volatile unsigned *coprocessors = (volatile unsigned *)0xE000ED88u;
    *coprocessors |= 0xFu << 20;
    __asm volatile("dsb\n isb");
    _start();
    for (;;) {}
}

__attribute__((noreturn)) static void fault(void)
{
    for (;;) {} /* the emulator's time runs out */
}

union entry {
    void *stack;
    void (*handler)(void);
};

__attribute__((section(".vectors"), used)) static const union entry vectors[7] = {
    {.stack = &stack_top}, {.handler = reset}, {.handler = fault}, {.handler = fault},
    {.handler = fault}, {.handler = fault}, {.handler = fault}
};
