# SPDX-License-Identifier: Apache-2.0
# The Debian package: `cmake --build build --target package`, or cpack -G DEB --config build/CPackConfig.cmake.
set(BLKPROF_MAINTAINER "blkprof maintainers <maintainers@blkprof.example>" CACHE STRING "who made the package: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME blkprof)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${BLKPROF_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "block I/O profiler: which code is waiting for the disk")
set(CPACK_PACKAGE_DESCRIPTION "blkprof shows the time that programs spend on disks as a flame graph: the
width of a frame is time in block I/O, bytes read, bytes written or requests,
by the stack of the program that issued them. It needs Linux 5.10 or later,
root, and nothing of the programs: no restart, no debug symbols.
.
The agent profiles a node for ever and ships windows to the collector, which
keeps those of all nodes. The installation starts neither:
blkprof-agent.service and blkprof-collector.service are enabled where they
are to run.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/PackageFiles.cmake)

set(debian ${CMAKE_SOURCE_DIR}/deploy/debian)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)
include(CPack)
