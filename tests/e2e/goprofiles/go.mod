// SPDX-License-Identifier: Apache-2.0
module goprofiles

go 1.19
