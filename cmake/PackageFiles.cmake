# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the tree of the installed program: what an installation from source does not have.
set(source ${CMAKE_CURRENT_LIST_DIR}/..)
set(root ${CPACK_TEMPORARY_DIRECTORY})
# cpack has DESTDIR set, which file(INSTALL) would put in front of the absolute paths below.
set(destination "$ENV{DESTDIR}")
unset(ENV{DESTDIR})
set(documents ${root}/usr/share/doc/blkprof)
set(debian ${source}/deploy/debian)

function(compress file)
  execute_process(COMMAND gzip -n9 ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(INSTALL ${source}/docs/agent.conf ${source}/docs/collector.conf DESTINATION ${root}/etc/blkprof)
file(INSTALL ${source}/deploy/blkprof-agent.service ${source}/deploy/blkprof-collector.service
  DESTINATION ${root}/lib/systemd/system)
file(INSTALL ${debian}/copyright DESTINATION ${documents})
file(INSTALL ${debian}/changelog DESTINATION ${documents} RENAME changelog.Debian)
file(INSTALL ${source}/CHANGELOG.md DESTINATION ${documents} RENAME changelog)
file(INSTALL ${source}/README.md DESTINATION ${documents})
file(GLOB guides ${source}/docs/*.md)
file(INSTALL ${guides} DESTINATION ${documents}/docs)
file(INSTALL ${debian}/lintian-overrides DESTINATION ${root}/usr/share/lintian/overrides RENAME blkprof)

# Debian's zsh looks there.
file(MAKE_DIRECTORY ${root}/usr/share/zsh/vendor-completions)
file(RENAME ${root}/usr/share/zsh/site-functions/_blkprof ${root}/usr/share/zsh/vendor-completions/_blkprof)
file(REMOVE_RECURSE ${root}/usr/share/zsh/site-functions)

file(GLOB pages ${root}/usr/share/man/man1/*.1)
foreach(file ${pages} ${documents}/changelog ${documents}/changelog.Debian)
  compress(${file})
endforeach()
set(ENV{DESTDIR} "${destination}")
