// SPDX-License-Identifier: Apache-2.0
#include "cli/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

// Servers take `seconds` to answer and then some; without it pprof's own patience.
#define PATIENCE 60
#define CONNECT_PATIENCE 10

struct download {
	CURL *curl;
	int fd, error;
	struct buf *to; // instead of fd
	uint64_t max, got;
	bool too_large;
	char said[200]; // the first bytes of an error's text
	size_t said_len;
};

bool fetch_is_url(const char *text)
{
	return !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8);
}

char *fetch_display(const char *url)
{
	const char *host = strstr(url, "://") + 3, *at;
	size_t len = strcspn(host, "/?#");
	char *text;

	at = memrchr(host, '@', len);
	if (!at)
		return strdup(url);
	text = malloc(strlen(url) + 1);
	if (!text)
		return NULL;
	memcpy(text, url, (size_t)(host - url));
	strcpy(text + (host - url), at + 1);
	return text;
}

static size_t on_data(char *data, size_t size, size_t n, void *context)
{
	struct download *d = context;
	size_t len = size * n, done = 0;
	long status = 0;

	curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) {
		size_t room = sizeof(d->said) - 1 - d->said_len;

		memcpy(d->said + d->said_len, data, len < room ? len : room);
		d->said_len += len < room ? len : room;
		return d->said_len < sizeof(d->said) - 1 ? len : 0;
	}
	d->got += len;
	if (d->got > d->max) {
		d->too_large = true;
		return 0;
	}
	if (d->to) {
		buf_append(d->to, data, len);
		d->error = -d->to->error;
		return d->to->error ? 0 : len;
	}
	while (done < len) {
		ssize_t w = write(d->fd, data + done, len - done);

		if (w < 0 && errno != EINTR) {
			d->error = errno;
			return 0;
		}
		done += w > 0 ? (size_t)w : 0;
	}
	return len;
}

// As pprof: half as long again as the profile takes.
static long patience(const char *url)
{
	const char *seconds = strstr(url, "seconds=");
	uint64_t n;
	char digits[12] = "";

	if (!seconds)
		return PATIENCE + 5;
	seconds += strlen("seconds=");
	memcpy(digits, seconds, strspn(seconds, "0123456789") < sizeof(digits) ? strspn(seconds, "0123456789") : 0);
	if (text_number(digits, 1, 1000000, "", &n, NULL))
		return PATIENCE + 5;
	return (long)(n * 3 / 2 + 10);
}

static void first_line(struct download *d, char *out, size_t cap)
{
	d->said[d->said_len] = 0;
	d->said[strcspn(d->said, "\r\n")] = 0;
	text_sanitize(out, cap, d->said, strlen(d->said));
}

static int explain(struct download *d, const char *url, CURLcode code, struct error *e)
{
	char *shown = fetch_display(url), *type = NULL, text[200] = "", limit[32];
	const char *name = shown ? shown : "the address";
	long status = 0;
	int err = -EIO;

	curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(d->curl, CURLINFO_CONTENT_TYPE, &type);
	if (type && !strncmp(type, "text/plain", 10))
		first_line(d, text, sizeof(text));
	if (d->too_large)
		err = error_set(e, -EFBIG, "%.200s: it has more than %s; %s", name, text_bytes(limit, sizeof(limit), (double)d->max),
				d->to ? "ask for less" : "raise the limit with --max-size");
	else if (d->error)
		error_set(e, err, "%.200s: cannot keep it: %s", name, strerror(d->error));
	else if (status == 401 || status == 403)
		error_set(e, err, "%.200s: the server refuses (%ld)%s%s; a token goes into the address: http://user:TOKEN@host/",
			  name, status, *text ? ": " : "", text);
	else if (status && status != 200)
		err = error_set(e, status == 404 ? -ENODATA : err, "%.200s: the server answers %ld%s%s", name, status, *text ? ": " : "", text);
	else
		error_set(e, err, "%.200s: %s", name, curl_easy_strerror(code));
	free(shown);
	return err;
}

static void set_common(CURL *curl, struct download *d, const char *url)
{
	d->curl = curl;
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_PATIENCE);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "blkprof/" BLKPROF_VERSION);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, d);
}

static int perform(struct download *d, const char *url, struct error *e)
{
	CURLcode code = curl_easy_perform(d->curl);
	long status = 0;

	curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &status);
	return code != CURLE_OK || status != 200 ? explain(d, url, code, e) : 0;
}

static CURL *start(struct error *e)
{
	CURL *curl = curl_global_init(CURL_GLOBAL_DEFAULT) ? NULL : curl_easy_init();

	if (!curl)
		error_set(e, -ENOMEM, "cannot start libcurl");
	return curl;
}

int fetch(const char *url, int fd, uint64_t max, struct error *e)
{
	struct download d = { .fd = fd, .max = max };
	CURL *curl = start(e);
	int err;

	if (!curl)
		return -ENOMEM;
	set_common(curl, &d, url);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, patience(url));
	err = perform(&d, url, e);
	curl_easy_cleanup(curl);
	curl_global_cleanup();
	return err;
}

static void read_note(CURL *curl, struct fetch_request *r)
{
	struct curl_header *h;

	r->note[0] = 0;
	if (curl_easy_header(curl, "X-Blkprof-Note", 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
		text_sanitize(r->note, sizeof(r->note), h->value, strlen(h->value));
}

int fetch_to(const char *url, struct fetch_request *r, struct buf *to, struct error *e)
{
	struct download d = { .fd = -1, .max = r->max, .to = to };
	CURL *curl = start(e);
	int err;

	if (!curl)
		return -ENOMEM;
	set_common(curl, &d, url);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)r->patience);
	if (r->token) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, r->token);
	}
	if (r->ca) {
		curl_easy_setopt(curl, CURLOPT_CAINFO, r->ca);
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); // or the system's would be trusted too
	}
	curl_easy_setopt(curl, CURLOPT_SSLCERT, r->cert);
	curl_easy_setopt(curl, CURLOPT_SSLKEY, r->key);
	err = perform(&d, url, e);
	if (!err)
		read_note(curl, r);
	curl_easy_cleanup(curl);
	curl_global_cleanup();
	return err;
}

void fetch_add(struct buf *url, const char *name, const char *value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";

	if (!value)
		return;
	buf_printf(url, "%c%s=", url->len && memchr(url->data, '?', url->len) ? '&' : '?', name);
	for (; *value; value++)
		buf_printf(url, strchr(plain, *value) ? "%c" : "%%%02X", (unsigned char)*value);
}
