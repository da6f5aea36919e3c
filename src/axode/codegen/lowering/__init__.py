"""From tapes and programs of tapes to LLVM IR."""
