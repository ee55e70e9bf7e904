// SPDX-License-Identifier: Apache-2.0
#include "wire/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "common/file.h"

#define Z85 41
#define KEY_FILE_MAX 4096

static const char first_line[] = "# blkprof: a secret key. Whoever has it can speak in this node's name.\n";

int key_pair_generate(struct key_pair *ret, struct error *e)
{
	char public[Z85], secret[Z85];
	int err = 0;

	if (zmq_curve_keypair(public, secret))
		return error_set(e, -ENOTSUP, "no keys can be made: this libzmq was built without CURVE");
	if (!zmq_z85_decode(ret->public, public) || !zmq_z85_decode(ret->secret, secret))
		err = error_set(e, -EIO, "libzmq made a key that it cannot read");
	explicit_bzero(secret, sizeof(secret));
	return err;
}

void key_pair_clear(struct key_pair *k)
{
	explicit_bzero(k, sizeof(*k));
}

void key_text(const uint8_t key[KEY_SIZE], char ret[KEY_TEXT])
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < KEY_SIZE; i++) {
		ret[2 * i] = digits[key[i] >> 4];
		ret[2 * i + 1] = digits[key[i] & 15];
	}
	ret[2 * KEY_SIZE] = 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int key_parse(const char *text, uint8_t ret[KEY_SIZE], struct error *e)
{
	uint8_t key[KEY_SIZE];

	if (strnlen(text, KEY_TEXT) != KEY_TEXT - 1)
		return error_set(e, -EBADMSG, "a key has %d hexadecimal digits ('blkprof keygen' prints one)", KEY_TEXT - 1);
	for (unsigned i = 0; i < KEY_SIZE; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return error_set(e, -EBADMSG, "a key has hexadecimal digits only");
		key[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(ret, key, sizeof(key));
	explicit_bzero(key, sizeof(key));
	return 0;
}

static int write_new(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), err;

	if (fd < 0)
		return -errno;
	// Whatever the mask is, and before the secret is in it.
	err = fchmod(fd, 0600) ? -errno : file_write_fd(fd, text, len);
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (err)
		unlink(path);
	return err;
}

int key_file_write(const char *path, const struct key_pair *k, struct error *e)
{
	char text[sizeof(first_line) + KEY_TEXT + 1], key[KEY_TEXT];
	int len, err;

	key_text(k->secret, key);
	len = snprintf(text, sizeof(text), "%s%s\n", first_line, key);
	err = write_new(path, text, (size_t)len);
	explicit_bzero(text, sizeof(text));
	explicit_bzero(key, sizeof(key));
	if (err == -EEXIST)
		return error_set(e, err, "%s is there already and keys are never overwritten: name another file or remove it", path);
	if (err)
		return error_set(e, err, "cannot write %s: %s", path, strerror(-err));
	return 0;
}

// The one line that is neither empty nor a comment.
static int secret_of(char *text, struct key_pair *ret, struct error *e)
{
	char *key = NULL, *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		line[strcspn(line, " \t\r")] = 0;
		if (!*line || *line == '#')
			continue;
		if (key)
			return error_set(e, -EBADMSG, "it holds more than one key");
		key = line;
	}
	return key_parse(key ? key : "", ret->secret, e);
}

static int public_of(struct key_pair *k, struct error *e)
{
	char secret[Z85], public[Z85];
	int err = 0;

	if (!zmq_z85_encode(secret, k->secret, KEY_SIZE) || zmq_curve_public(public, secret) ||
	    !zmq_z85_decode(k->public, public))
		err = error_set(e, -ENOTSUP, "keys cannot be used: this libzmq was built without CURVE");
	explicit_bzero(secret, sizeof(secret));
	return err;
}

static int check_file(int fd, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_set(e, -errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, -EBADMSG, "it is no regular file");
	if (st.st_mode & 027)
		return error_set(e, -EACCES, "others may read or change it (mode %03o): chmod 600", st.st_mode & 0777);
	return 0;
}

static int read_pair(int fd, struct key_pair *k, struct error *e)
{
	struct buf b = { 0 };
	int err = check_file(fd, e);

	if (err)
		return err;
	err = file_read_fd(fd, KEY_FILE_MAX, &b);
	if (err)
		error_set(e, err, "%s", err == -EFBIG ? "it is too large for a key" : strerror(-err));
	else
		err = secret_of((char *)b.data, k, e);
	if (b.data)
		explicit_bzero(b.data, b.len);
	buf_free(&b);
	return err ? err : public_of(k, e);
}

int key_file_read(const char *path, struct key_pair *ret, struct error *e)
{
	struct key_pair k = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err;

	if (fd < 0) {
		err = -errno;
		return error_set(e, err, "cannot read the key %s: %s ('blkprof keygen -o FILE' makes one)", path, strerror(-err));
	}
	err = read_pair(fd, &k, e);
	close(fd);
	if (err)
		error_prefix(e, err, "cannot use the key %.90s", path);
	else
		*ret = k;
	key_pair_clear(&k);
	return err;
}
