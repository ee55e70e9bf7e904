// SPDX-License-Identifier: Apache-2.0
#include "collector/solr_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/text.h"

#define CONNECT_SECONDS 10L
#define ANSWER_SECONDS 120L // a Solr that merges takes its time
#define PASSWORD_MAX 1024
#define CA_MAX (4u << 20)

struct solr_client {
	struct solr_client_options options;
	CURL *curl;
	struct curl_slist *get, *json; // headers
	unsigned at; // the address that answered last
	struct buf answer;
	char password[PASSWORD_MAX + 1];
	char why[CURL_ERROR_SIZE];
};

static size_t on_data(char *data, size_t size, size_t n, void *context)
{
	struct solr_client *c = context;

	if (c->answer.len + size * n > SOLR_ANSWER_MAX)
		return 0;
	buf_append(&c->answer, data, size * n);
	return c->answer.error ? 0 : size * n;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t f)
{
	const struct solr_client *c = context;

	return c->options.stop && __atomic_load_n(c->options.stop, __ATOMIC_RELAXED);
}

static int read_password(struct solr_client *c, struct error *e)
{
	struct buf b = { 0 };
	int err;

	if (!c->options.password_file)
		return 0;
	err = file_read(c->options.password_file, PASSWORD_MAX, &b);
	if (err) {
		buf_free(&b);
		return error_set(e, err, "cannot read the password of Solr in %s: %s", c->options.password_file, strerror(-err));
	}
	memcpy(c->password, b.data, b.len);
	c->password[strcspn(c->password, "\r\n")] = 0;
	explicit_bzero(b.data, b.len);
	buf_free(&b);
	return 0;
}

// libcurl reads it for each connection: what is wrong with it is to be known at the start.
static int check_ca(const struct solr_client *c, struct error *e)
{
	static const char mark[] = "-----BEGIN CERTIFICATE-----";
	const char *path = c->options.ca;
	struct buf b = { 0 };
	int err;

	if (!path)
		return 0;
	err = file_read(path, CA_MAX, &b);
	if (err)
		error_set(e, err, "cannot read [solr] ca = %s: %s", path, strerror(-err));
	else if (!memmem(b.data, b.len, mark, sizeof(mark) - 1))
		err = error_set(e, -EINVAL, "[solr] ca = %s holds no certificate: it is to be the authority's that signed Solr's, as PEM", path);
	buf_free(&b);
	return err;
}

static void configure(struct solr_client *c)
{
	curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, ANSWER_SECONDS);
	curl_easy_setopt(c->curl, CURLOPT_USERAGENT, "blkprof/" BLKPROF_VERSION);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c);
	curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->why);
	if (c->options.ca) {
		curl_easy_setopt(c->curl, CURLOPT_CAINFO, c->options.ca);
		curl_easy_setopt(c->curl, CURLOPT_CAPATH, NULL); // or the system's would be trusted too
	}
	if (c->options.user) {
		curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(c->curl, CURLOPT_USERNAME, c->options.user);
		curl_easy_setopt(c->curl, CURLOPT_PASSWORD, c->password);
	}
}

static int add_header(struct curl_slist **to, const char *line)
{
	struct curl_slist *more = curl_slist_append(*to, line);

	*to = more ? more : *to;
	return more ? 0 : -ENOMEM;
}

// The trace id in both forms: an agent may have been told another name than X-Trace-Id.
static int make_headers(struct solr_client *c)
{
	const char *id = c->options.trace_id;
	char plain[80], parent[100];
	int err = 0;

	snprintf(plain, sizeof(plain), "X-Trace-Id: %.32s", id ? id : "");
	snprintf(parent, sizeof(parent), "traceparent: 00-%.32s-%.16s-00", id ? id : "", id ? id : "");
	for (unsigned i = 0; id && i < 2 && !err; i++) {
		err = add_header(i ? &c->json : &c->get, plain);
		if (!err)
			err = add_header(i ? &c->json : &c->get, parent);
	}
	if (!err)
		err = add_header(&c->json, "Content-Type: application/json");
	// No "Expect: 100-continue": it costs a round trip for each batch.
	return err ? err : add_header(&c->json, "Expect:");
}

int solr_client_new(const struct solr_client_options *options, struct solr_client **ret, struct error *e)
{
	struct solr_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(e, -ENOMEM, "out of memory");
	c->options = *options;
	err = curl_global_init(CURL_GLOBAL_DEFAULT) ? error_set(e, -ENOMEM, "cannot start libcurl") : read_password(c, e);
	if (!err)
		err = check_ca(c, e);
	if (!err) {
		c->curl = curl_easy_init();
		err = c->curl && !make_headers(c) ? 0 : error_set(e, -ENOMEM, "cannot start libcurl");
	}
	if (err) {
		solr_client_free(c);
		return err;
	}
	configure(c);
	*ret = c;
	return 0;
}

void solr_client_free(struct solr_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	curl_slist_free_all(c->get);
	curl_slist_free_all(c->json);
	curl_global_cleanup();
	buf_free(&c->answer);
	explicit_bzero(c->password, sizeof(c->password));
	free(c);
}

const char *solr_client_url(const struct solr_client *c)
{
	return c->options.url.item[c->at];
}

static int unreachable(const struct solr_client *c, CURLcode code, struct error *e)
{
	const char *base = solr_client_url(c), *why = *c->why ? c->why : curl_easy_strerror(code);

	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		return error_set(e, -EHOSTUNREACH, "Solr at %.150s: its certificate is not trusted by %s%.100s (%.150s): see [solr] ca", base,
				 c->options.ca ? "ca = " : "the system's authorities", c->options.ca ? c->options.ca : "", why);
	return error_set(e, -EHOSTUNREACH, "Solr at %.200s: %s", base, curl_easy_strerror(code));
}

// One address: the status, or a negative errno.
static int perform(struct solr_client *c, const char *path, struct error *e)
{
	const char *base = solr_client_url(c);
	size_t len = strlen(base);
	char *url;
	long status = 0;
	CURLcode code;

	while (len && base[len - 1] == '/')
		len--;
	if (asprintf(&url, "%.*s/%s", (int)len, base, path) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	c->answer.len = 0;
	c->answer.error = 0;
	*c->why = 0;
	curl_easy_setopt(c->curl, CURLOPT_URL, url);
	code = curl_easy_perform(c->curl);
	free(url);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return error_set(e, -ECANCELED, "ended while Solr was asked");
	if (code != CURLE_OK || !status)
		return unreachable(c, code, e);
	buf_byte(&c->answer, 0);
	if (c->answer.error)
		return error_set(e, -ENOMEM, "out of memory");
	c->answer.len--;
	return (int)status;
}

static int request(struct solr_client *c, const char *path, const struct buf **ret, struct error *e)
{
	int status = -EINVAL;

	for (unsigned i = 0; i < c->options.url.n; i++) {
		status = perform(c, path, e);
		if (status == -ECANCELED || status == -ENOMEM)
			return status;
		if (status > 0 && status != 502 && status != 503 && status != 504) {
			*ret = &c->answer;
			return status;
		}
		if (status > 0)
			status = solr_explain(c, status, &c->answer, -EAGAIN, e);
		c->at = (c->at + 1) % c->options.url.n;
	}
	return status;
}

int solr_get(struct solr_client *c, const char *path, const struct buf **ret, struct error *e)
{
	curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->get);
	return request(c, path, ret, e);
}

int solr_post(struct solr_client *c, const char *path, const void *json, size_t size, const struct buf **ret, struct error *e)
{
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->json);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, (const char *)json);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	return request(c, path, ret, e);
}

// {"error":{"msg":…}}, or what is no JSON as it is.
static void words(const struct buf *body, char *out, size_t cap)
{
	json_t *answer = json_loadb((const char *)body->data, body->len, 0, NULL);
	const char *text = json_string_value(json_object_get(json_object_get(answer, "error"), "msg"));

	if (!text)
		text = body->len && *body->data != '<' ? (const char *)body->data : "";
	text_sanitize(out, cap, text, strlen(text));
	json_decref(answer);
}

int solr_explain(struct solr_client *c, int status, const struct buf *body, int code, struct error *e)
{
	const char *url = solr_client_url(c);
	char said[300];

	words(body, said, sizeof(said));
	if (status == 401 || status == 403)
		return error_set(e, code, "Solr at %.150s refuses user and password (%d): see [solr] user and password_file", url, status);
	if (status == 404)
		return error_set(e, code, "Solr at %.150s has no such collection (404): create it (bin/solr create -c NAME), or correct [solr] url",
				 url);
	return error_set(e, code, "Solr at %.150s answers %d%s%.250s", url, status, *said ? ": " : "", said);
}

bool solr_refused_some(const struct buf *body, char *out, size_t cap)
{
	json_t *answer = body->len ? json_loadb((const char *)body->data, body->len, 0, NULL) : NULL;
	const json_t *errors = json_object_get(json_object_get(answer, "responseHeader"), "errors");
	const char *text = json_string_value(json_object_get(json_array_get(errors, 0), "message"));
	bool some = json_array_size(errors) > 0;

	text = text ? text : "";
	text_sanitize(out, cap, text, strlen(text));
	json_decref(answer);
	return some;
}
