"""Texts of an exported CMake project that do not depend on the model but for names and numbers."""

from __future__ import annotations

import re

MARK = "# Written by Axode."


def fill(text: str, **values: str) -> str:
    """Replace @name@ by the value of each name."""
    return re.sub("@([A-Za-z]+)@", lambda found: values[found[1]], text)


CMAKE = """# Written by Axode.
cmake_minimum_required(VERSION 3.16)
project(@name@ VERSION 1.0 LANGUAGES C)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  set(@UPPER@_IS_TOP ON)
else()
  set(@UPPER@_IS_TOP OFF)
endif()
option(@UPPER@_SELF_TEST "Build the self-test, which ctest runs" ${@UPPER@_IS_TOP})

add_library(@name@ src/@name@.c src/@name@_step.c)
add_library(@name@::@name@ ALIAS @name@)
target_include_directories(@name@ PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(@name@ PROPERTIES
  C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
  POSITION_INDEPENDENT_CODE ON WINDOWS_EXPORT_ALL_SYMBOLS ON)
if(NOT WIN32)
  target_link_libraries(@name@ PUBLIC m)
endif()

install(TARGETS @name@ EXPORT @name@-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES include/@name@.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT @name@-targets FILE @name@-config.cmake NAMESPACE @name@::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/@name@)
write_basic_package_version_file(@name@-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/@name@-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/@name@)

if(@UPPER@_SELF_TEST)
  enable_testing()
  add_executable(@name@_self_test tests/self_test.c)
  target_link_libraries(@name@_self_test PRIVATE @name@)
  set_target_properties(@name@_self_test PROPERTIES
    C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  add_test(NAME @name@_self_test COMMAND @name@_self_test)
endif()
"""

README = """# @title@ in C

Written by Axode. C99 and `math.h`, all numbers `@real@`; no allocation, no global state, callable
from C++.

```
cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure
cmake --install build --prefix /where/you/like
```

Other projects use it with `add_subdirectory` or `find_package(@name@)`, and
`target_link_libraries(program PRIVATE @name@::@name@)`. Without CMake, compile the files in `src/`
with `-Iinclude` and link with `-lm`. `-D@UPPER@_SELF_TEST=OFF` leaves out the self-test.

## Arrays

Matrices are row-major. All entries are in SI units, angles in radians.

@entries@

`@signature@` makes a step of the classical Runge-Kutta method by
`dt` seconds, with inputs that are held during the step. It returns 0 unless it fails (see the
header).

## Errors of rounding

`tests/self_test.c` compares every function, at @tested@ states, with numbers of the machine that
wrote this folder. It accepts twice the first-order bound of the accumulated rounding at each
state: every operation rounds by half a unit in the last place, every function of `math.h` by two
units. Compilers that contract products and sums, and other mathematical libraries, keep within
that. `-ffast-math` need not.

The table has the bounds at @states@ random states that satisfy the constraints (@few@ for the
step), and of single precision the errors that were found there; both relative to the largest
entry of the result. Near singularities every precision loses digits, and no bound holds for all
states.

| function | bound | at 99 % | found | at 99 % |
|---|---|---|---|---|
@table@

## Stack

The header states what each function takes at most: a place for every value, as compilers without
optimization have it. `-fstack-usage` reports what your compiler really takes.
"""
