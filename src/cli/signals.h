// SPDX-License-Identifier: Apache-2.0
// Signals of a recording. Alone, the first INT, TERM or HUP ends it and later ones change nothing: what there is gets
// written whole. With a command, the terminal's INT and QUIT reach both and are the command's business, and what somebody
// sends to us alone is handed on to it, as if we were it.
#ifndef BLKPROF_CLI_SIGNALS_H
#define BLKPROF_CLI_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

void signals_install(bool with_command);
void signals_forward_to(pid_t pid); // 0 = nobody
bool signals_stop(void);	    // ended by a signal; never with a command that runs
// Puts the dispositions back as the program found them: for the child, before exec.
void signals_restore(void);

#endif
