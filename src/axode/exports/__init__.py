"""Models for other programs: C, CMake projects, PTX, FMUs, WebAssembly."""
