# SPDX-License-Identifier: Apache-2.0
# blkprof_library(NAME DEPENDS lib… PACKAGES pkg-config-name…)
# One static library bp_NAME of every .c file in the current folder; `src/` is its include root.
function(blkprof_library name)
  cmake_parse_arguments(L "" "" "DEPENDS;PACKAGES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  add_library(bp_${name} STATIC ${sources})
  target_include_directories(bp_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(bp_${name} PUBLIC ${L_DEPENDS})
  foreach(package ${L_PACKAGES})
    pkg_check_modules(${package} REQUIRED IMPORTED_TARGET ${package})
    target_link_libraries(bp_${name} PUBLIC PkgConfig::${package})
  endforeach()
endfunction()
