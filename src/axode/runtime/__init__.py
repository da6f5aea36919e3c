"""Run what was exported, on machines without CasADi and LLVM."""
