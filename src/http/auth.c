// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "http/internal.h"

#define TOKEN_MIN 16

static int read_token(const char *path, char token[HTTP_TOKEN_MAX], struct error *e)
{
	char line[HTTP_TOKEN_MAX + 2];
	struct stat st;
	size_t len;
	int err = stat(path, &st) ? -errno : file_read_line(path, line, sizeof(line));

	if (err)
		return error_set(e, err, "cannot read token_file %.200s: %s", path, strerror(-err));
	if (S_ISREG(st.st_mode) && (st.st_mode & 07))
		return error_set(e, -EACCES, "token_file %.200s can be read by everybody; chmod 600 it and make a new token", path);
	len = strlen(line);
	while (len && isspace((unsigned char)line[len - 1]))
		line[--len] = 0;
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)line[i]))
			return error_set(e, -EINVAL, "token_file %.200s: a token has only letters, digits and signs, no blanks", path);
	if (len < TOKEN_MIN || len >= HTTP_TOKEN_MAX)
		return error_set(e, -EINVAL, "token_file %.200s: its first line is the token, %u to %u bytes; "
				 "`openssl rand -hex 24` makes one", path, TOKEN_MIN, HTTP_TOKEN_MAX - 1);
	memcpy(token, line, len + 1);
	return 0;
}

int http_auth_read(const struct http_options *o, bool loopback, struct http_auth *ret, struct error *e)
{
	struct http_auth a = { .certificates = o->tls_client_ca };
	int err = 0;

	if (o->token_file)
		err = read_token(o->token_file, a.token, e);
	if (!err && !*a.token && !a.certificates && !loopback)
		return error_set(e, -EACCES, "listen = %.100s can be reached from other machines: set token_file, or tls_cert, tls_key and "
				 "tls_client_ca, or listen on 127.0.0.1", o->listen);
	if (!err)
		*ret = a;
	return err;
}

// Looks at every byte whatever differs.
static bool equal(const char *token, const char *given)
{
	size_t len = strlen(given);
	unsigned char differs = strlen(token) != len;

	for (size_t i = 0; i < HTTP_TOKEN_MAX; i++)
		differs |= (unsigned char)token[i] ^ (unsigned char)(i < len ? given[i] : 0);
	return !differs;
}

bool http_auth_ok(const struct http_auth *a, struct MHD_Connection *c)
{
	const char *header = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	char *user, *password = NULL;
	bool ok = false;

	if (a->certificates && http_certificate_ok(c))
		return true;
	if (!*a->token)
		return !a->certificates;
	if (!header)
		return false;
	if (!strncasecmp(header, "Bearer ", 7))
		return equal(a->token, header + 7 + strspn(header + 7, " "));
	user = MHD_basic_auth_get_username_password(c, &password);
	if (user)
		MHD_free(user);
	if (password) {
		ok = equal(a->token, password);
		MHD_free(password);
	}
	return ok;
}

bool http_certificate_ok(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned status = 0;

	if (!info || !info->tls_session)
		return false;
	return gnutls_certificate_verify_peers2((gnutls_session_t)info->tls_session, &status) == GNUTLS_E_SUCCESS && !status;
}
