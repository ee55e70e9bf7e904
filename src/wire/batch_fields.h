// SPDX-License-Identifier: Apache-2.0
// Field numbers of proto/wire.proto: persistent, append only.
#ifndef BLKPROF_WIRE_BATCH_FIELDS_H
#define BLKPROF_WIRE_BATCH_FIELDS_H

enum batch_field {
	BATCH_FIELD_KIND = 1,
	BATCH_FIELD_NODE = 2,
	BATCH_FIELD_INSTANCE = 3,
	BATCH_FIELD_SEQUENCE = 4,
	BATCH_FIELD_START = 5,
	BATCH_FIELD_END = 6,
	BATCH_FIELD_LABEL = 7,
	BATCH_FIELD_PROFILE = 8,
	BATCH_FIELD_GAP_FIRST = 9,
	BATCH_FIELD_GAP_BYTES = 10,
	BATCH_FIELD_REQUEST = 11,
};

enum label_field {
	LABEL_FIELD_NAME = 1,
	LABEL_FIELD_VALUE = 2,
};

enum profile_field {
	PROFILE_FIELD_SERVICE = 1,
	PROFILE_FIELD_DATA = 2,
};

#endif
