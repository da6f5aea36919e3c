"""Exported C on a Cortex-M4F and on aarch64, both emulated by QEMU."""
