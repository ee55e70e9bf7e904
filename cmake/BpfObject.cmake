# SPDX-License-Identifier: Apache-2.0
# blkprof_bpf_object(NAME): compiles NAME.bpf.c of the current folder for BPF and makes NAME.skel.h in the build folder.
# The compiler writes a depfile, so that a changed shared header rebuilds the object.
find_program(BPF_CLANG NAMES clang-16 clang-17 clang-18 clang-19 clang REQUIRED)
find_program(BPF_STRIP NAMES llvm-strip-16 llvm-strip-17 llvm-strip-18 llvm-strip-19 llvm-strip REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
  set(BPF_TARGET_ARCH x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
  set(BPF_TARGET_ARCH arm64)
else()
  message(FATAL_ERROR "no BPF target architecture for ${CMAKE_SYSTEM_PROCESSOR}")
endif()

function(blkprof_bpf_object name)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${name}.bpf.c)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)
  string(REPLACE "." "_" identifier ${name})
  add_custom_command(OUTPUT ${object}
    COMMAND ${BPF_CLANG} -g -O2 -target bpf -mcpu=v2 -D__TARGET_ARCH_${BPF_TARGET_ARCH} -Wall -Wno-unused-function
      -Wno-missing-declarations -fno-stack-protector
      -I${CMAKE_SOURCE_DIR}/src -isystem /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -MMD -MT ${object} -MF ${object}.d -c ${source} -o ${object}
    COMMAND ${BPF_STRIP} -g ${object}
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "BPF ${name}" VERBATIM)
  add_custom_command(OUTPUT ${skeleton}
    COMMAND ${BPFTOOL} gen skeleton ${object} name ${identifier} > ${skeleton}
    DEPENDS ${object} COMMENT "skeleton ${name}" VERBATIM)
  add_custom_target(bpf_${name} DEPENDS ${skeleton})
endfunction()
