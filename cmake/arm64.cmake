# SPDX-License-Identifier: MIT
#
# Cross build for 64-bit Arm with Debian's cross compiler; libraries from scripts/cross-sysroot in SKB_SYSROOT, tests
# under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(SKB_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-arm64" CACHE PATH "what scripts/cross-sysroot arm64 unpacked")
get_filename_component(SKB_SYSROOT "${SKB_SYSROOT}" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH "${SKB_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${SKB_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${SKB_SYSROOT}")
set(CMAKE_C_FLAGS_INIT "-isystem ${SKB_SYSROOT}/usr/include -isystem ${SKB_SYSROOT}/usr/include/aarch64-linux-gnu")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${SKB_SYSROOT}/usr/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${SKB_SYSROOT}/usr/lib/aarch64-linux-gnu")
