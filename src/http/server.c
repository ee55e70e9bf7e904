// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/metrics.h"
#include "common/text.h"
#include "http/internal.h"

#define PEM_MAX (1 << 20)
#define TLS_VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define ANSWER_MS 200 // for answers to go out when the server ends

struct http_server {
	struct http_options options;
	const struct http_route *routes;
	void *context;
	struct http_auth auth;
	struct http_workers *workers;
	struct http_peers *peers;
	struct MHD_Daemon *daemon;
	struct http_counters counters;
	struct buf cert, key, ca;
	uint64_t sending; // bytes of answers that clients are reading
	bool stopping;
	uint64_t unanswered; // jobs whose answers have not gone out
};

bool http_stopping(const struct http_server *s)
{
	return __atomic_load_n(&s->stopping, __ATOMIC_ACQUIRE);
}

const struct http_counters *http_get_counters(const struct http_server *s)
{
	return &s->counters;
}

uint16_t http_port(const struct http_server *s)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);

	return info ? info->port : 0;
}

static void job_free(struct http_job *j)
{
	if (!j)
		return;
	for (unsigned i = 0; i < j->request.n; i++) {
		free(j->request.argument[i].name);
		free(j->request.argument[i].value);
	}
	buf_free(&j->response.body);
	free(j);
}

// Scrapers that build one address for several targets may repeat an argument once for each of them.
static bool is_repeated(const struct http_request *q, const char *name, const char *value)
{
	for (unsigned i = 0; i < q->n; i++)
		if (!strcmp(q->argument[i].name, name) && !strcmp(q->argument[i].value, value))
			return true;
	return false;
}

struct arguments {
	struct http_request *request;
	bool refused; // one of them
};

static enum MHD_Result refuse_argument(struct arguments *all)
{
	all->refused = true;
	return MHD_NO;
}

static enum MHD_Result take_argument(void *context, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
				     size_t value_len)
{
	struct arguments *all = context;
	struct http_request *q = all->request;
	struct http_argument *a = &q->argument[q->n];

	(void)kind;
	// A NUL within would hide what follows it.
	if (strlen(name) != name_len || (value && strlen(value) != value_len))
		return refuse_argument(all);
	if (is_repeated(q, name, value ? value : ""))
		return MHD_YES;
	if (q->n == HTTP_ARGUMENTS || name_len > HTTP_TEXT || (value && value_len > HTTP_TEXT))
		return refuse_argument(all);
	a->name = strdup(name);
	a->value = strdup(value ? value : "");
	if (!a->name || !a->value) {
		free(a->name);
		free(a->value);
		return refuse_argument(all);
	}
	q->n++;
	return MHD_YES;
}

static struct http_job *job_new(struct http_server *s, struct MHD_Connection *c, const struct http_route *route)
{
	struct http_job *j = calloc(1, sizeof(*j));
	struct arguments all = { .request = j ? &j->request : NULL };
	const union MHD_ConnectionInfo *info;

	if (!j)
		return NULL;
	j->route = route;
	j->connection = c;
	j->request.path = route->path;
	j->request.server = s;
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	j->request.socket = info ? info->connect_fd : -1;
	j->response.status = MHD_HTTP_OK;
	MHD_get_connection_values_n(c, MHD_GET_ARGUMENT_KIND, take_argument, &all);
	if (!all.refused)
		return j;
	job_free(j);
	return NULL;
}

static struct http_peer *peer_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
	MHD_add_response_header(r, name, value);
}

// Takes the body with it.
static enum MHD_Result send_response(struct http_server *s, struct MHD_Connection *c, struct http_response *r)
{
	struct MHD_Response *m;
	enum MHD_Result ok;
	char text[120];

	metric_add(&s->counters.bytes, r->body.len);
	http_peer_reads(s->peers, peer_of(c), r->body.len);
	m = MHD_create_response_from_buffer(r->body.len, r->body.data, MHD_RESPMEM_MUST_FREE);
	if (!m) {
		buf_free(&r->body);
		return MHD_NO;
	}
	memset(&r->body, 0, sizeof(r->body));
	add_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, r->type ? r->type : "text/plain; charset=utf-8");
	add_header(m, "X-Content-Type-Options", "nosniff");
	add_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (r->gzipped)
		add_header(m, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	if (r->file_name) {
		snprintf(text, sizeof(text), "attachment; filename=\"%.80s\"", r->file_name);
		add_header(m, MHD_HTTP_HEADER_CONTENT_DISPOSITION, text);
	}
	if (*r->note)
		add_header(m, "X-Blkprof-Note", r->note);
	if (r->status >= 400)
		add_header(m, "X-Go-Pprof", "1"); // go tool pprof then shows the body
	if (r->status == MHD_HTTP_UNAUTHORIZED)
		add_header(m, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"blkprof\"");
	if (r->status == MHD_HTTP_SERVICE_UNAVAILABLE)
		add_header(m, MHD_HTTP_HEADER_RETRY_AFTER, "5");
	ok = MHD_queue_response(c, r->status, m);
	MHD_destroy_response(m);
	return ok;
}

static void make_error(struct http_response *r, unsigned status, const char *text)
{
	char line[sizeof(((struct error *)0)->text)];

	buf_free(&r->body);
	r->type = NULL;
	r->file_name = NULL;
	r->gzipped = false;
	r->note[0] = 0;
	r->status = status;
	// One line, and nothing that a terminal obeys: it may quote an argument.
	text_sanitize(line, sizeof(line), text, strlen(text));
	buf_printf(&r->body, "%s\n", line);
}

static enum MHD_Result refuse(struct http_server *s, struct MHD_Connection *c, unsigned status, const char *text)
{
	struct http_response r = { 0 };

	make_error(&r, status, text);
	return send_response(s, c, &r);
}

static void run_handler(struct http_server *s, struct http_job *j)
{
	struct error e = { "" };
	int err = j->route->fn(s->context, &j->request, &j->response, &e);

	if (!err && j->response.body.error)
		err = error_set(&e, -ENOMEM, "there is no memory for the answer; ask for less");
	if (!err && j->response.body.len > s->options.response)
		err = error_set(&e, -E2BIG, "the answer has %zu bytes, more than is sent; ask for less", j->response.body.len);
	if (!err)
		return;
	metric_add(&s->counters.failed, 1);
	make_error(&j->response, http_status_of(err), *e.text ? e.text : strerror(-err));
}

static void run_job(void *context, struct http_job *j)
{
	struct http_server *s = context;

	run_handler(s, j);
	j->state = JOB_DONE;
	MHD_resume_connection(j->connection);
}

static const struct http_route *find_route(const struct http_server *s, const char *path)
{
	for (const struct http_route *r = s->routes; r->path; r++)
		if (!strcmp(r->path, path))
			return r;
	return NULL;
}

static enum MHD_Result start(struct http_server *s, struct MHD_Connection *c, const char *path, void **job)
{
	const struct http_route *route = find_route(s, path);
	struct http_job *j;

	metric_add(&s->counters.requests, 1);
	if ((!route || !route->open) && !http_auth_ok(&s->auth, c)) {
		metric_add(&s->counters.refused_token, 1);
		return refuse(s, c, MHD_HTTP_UNAUTHORIZED,
			      "a token is needed: Authorization: Bearer TOKEN, or http://user:TOKEN@host/");
	}
	if (!route)
		return refuse(s, c, MHD_HTTP_NOT_FOUND, "there is nothing at this path");
	j = job_new(s, c, route);
	if (!j)
		return refuse(s, c, MHD_HTTP_BAD_REQUEST, "too many arguments, too long ones, or a NUL in one");
	if (route->quick) {
		enum MHD_Result ok;

		run_handler(s, j);
		ok = send_response(s, c, &j->response);
		job_free(j);
		return ok;
	}
	if (metric_get(&s->sending) > s->options.response) {
		job_free(j);
		metric_add(&s->counters.refused_busy, 1);
		return refuse(s, c, MHD_HTTP_SERVICE_UNAVAILABLE, "others are still reading large answers; try again in some seconds");
	}
	// Before it is queued: a worker may be done with it at once.
	j->state = JOB_QUEUED;
	*job = j;
	metric_add(&s->unanswered, 1);
	http_peer_waits(s->peers, peer_of(c));
	MHD_suspend_connection(c);
	if (http_workers_add(s->workers, j))
		return MHD_YES;
	metric_add(&s->counters.refused_busy, 1);
	make_error(&j->response, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests at once; try again in some seconds");
	j->state = JOB_DONE;
	MHD_resume_connection(c);
	return MHD_YES;
}

static char first_call; // its address marks a connection whose headers have come, but not its end

static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *path, const char *method, const char *version,
				  const char *data, size_t *size, void **job)
{
	struct http_server *s = context;
	struct http_job *j = *job;

	(void)version;
	(void)data;
	if (!j) {
		if (strcmp(method, "GET") && strcmp(method, "HEAD"))
			return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is answered");
		*job = &first_call;
		return MHD_YES;
	}
	if (*size) // nothing here takes a body: the connection is closed
		return MHD_NO;
	if ((void *)j == (void *)&first_call) {
		*job = NULL;
		return start(s, c, path, job);
	}
	if (j->state != JOB_DONE)
		return MHD_YES;
	j->sending = j->response.body.len;
	metric_add(&s->sending, j->sending);
	return send_response(s, c, &j->response);
}

static void on_completed(void *context, struct MHD_Connection *c, void **job, enum MHD_RequestTerminationCode why)
{
	struct http_server *s = context;
	struct http_job *j = *job != &first_call ? *job : NULL;

	(void)why;
	http_peer_asks(s->peers, peer_of(c));
	if (j) {
		metric_add(&s->sending, -j->sending);
		metric_add(&s->unanswered, -1ull);
	}
	job_free(j);
	*job = NULL;
}

static void on_connection(void *context, struct MHD_Connection *c, void **socket, enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct http_server *s = context;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		http_peers_remove(s->peers, *socket);
		*socket = NULL;
		return;
	}
	metric_add(&s->counters.connections, 1);
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	*socket = info ? http_peers_add(s->peers, info->connect_fd) : NULL;
}

static int read_pem(const char *path, const char *key, struct buf *to, struct error *e)
{
	int err = path ? file_read(path, PEM_MAX, to) : 0;

	return err ? error_set(e, err, "cannot read %s = %.200s: %s", key, path, strerror(-err)) : 0;
}

static int read_tls(struct http_server *s, struct error *e)
{
	const struct http_options *o = &s->options;
	int err;

	if (!o->tls_cert != !o->tls_key)
		return error_set(e, -EINVAL, "tls_cert and tls_key belong together: set both or none");
	if (o->tls_client_ca && !o->tls_cert)
		return error_set(e, -EINVAL, "tls_client_ca needs tls_cert and tls_key");
	err = read_pem(o->tls_cert, "tls_cert", &s->cert, e);
	if (!err)
		err = read_pem(o->tls_key, "tls_key", &s->key, e);
	return err ? err : read_pem(o->tls_client_ca, "tls_client_ca", &s->ca, e);
}

static void log_nothing(void *context, const char *format, va_list args)
{
	(void)context;
	(void)format;
	(void)args;
}

static int start_daemon(struct http_server *s, const struct sockaddr_storage *address, struct error *e)
{
	const struct http_options *o = &s->options;
	// Not epoll, which libmicrohttpd (0.9.75) uses edge-triggered: a client that has sent half a request and gone before
	// it was accepted is not noticed then, and keeps its place until it times out.
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem more[8];
	unsigned n = 0;

	if (address->ss_family == AF_INET6)
		flags |= MHD_USE_IPv6 | MHD_USE_DUAL_STACK;
	if (o->tls_cert) {
		flags |= MHD_USE_TLS;
		more[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert.data };
		more[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, s->key.data };
		// GnuTLS still speaks 1.0 and 1.1 unless told otherwise.
		more[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_VERSIONS };
	}
	if (o->tls_client_ca)
		more[n++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_TRUST, 0, s->ca.data };
	more[n] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
	errno = 0;
	// The logger must be the first option, or messages of the others go to standard error.
	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, log_nothing, NULL,
				     MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, o->connections,
				     MHD_OPTION_CONNECTION_TIMEOUT, o->timeout_s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     (size_t)32768, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
	if (s->daemon)
		return 0;
	if (errno == EADDRINUSE)
		return error_set(e, -EADDRINUSE, "listen = %.100s: another program listens there already", o->listen);
	return error_set(e, errno ? -errno : -EINVAL, "listen = %.100s: cannot serve there: %s", o->listen,
			 errno ? strerror(errno) : "are the certificate and the key PEM files that belong together?");
}

// Signals are for the thread that asks for them: that of the daemon's loop.
static int start_threads(struct http_server *s, const struct sockaddr_storage *address, struct error *e)
{
	const struct http_options *o = &s->options;
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->workers = http_workers_new(o->running ? o->running : 4, o->waiting ? o->waiting : 32, run_job, s);
	s->peers = http_peers_new(o->timeout_s, &s->counters.cut);
	err = s->workers && s->peers ? start_daemon(s, address, e) : error_set(e, -ENOMEM, "cannot start threads for HTTP");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int http_server_new(const struct http_options *options, const struct http_route *routes, void *context, struct http_server **ret,
		    struct error *e)
{
	struct http_server *s = calloc(1, sizeof(*s));
	struct sockaddr_storage address;
	bool loopback;
	int err;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->options = *options;
	s->routes = routes;
	s->context = context;
	s->options.connections = options->connections ? options->connections : 256;
	s->options.timeout_s = options->timeout_s ? options->timeout_s : 30;
	s->options.response = options->response ? options->response : (uint64_t)256 << 20;
	err = http_parse_listen(options->listen, &address, &loopback, e);
	if (!err)
		err = read_tls(s, e);
	if (!err)
		err = http_auth_read(options, loopback, &s->auth, e);
	if (!err)
		err = start_threads(s, &address, e);
	if (err) {
		http_server_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

// Those who waited are told why they get nothing; who does not read is not waited for.
static void send_answers(const struct http_server *s)
{
	for (unsigned ms = 0; ms < ANSWER_MS && metric_get(&s->unanswered); ms++)
		usleep(1000);
}

void http_server_free(struct http_server *s)
{
	int fd = -1;

	if (!s)
		return;
	__atomic_store_n(&s->stopping, true, __ATOMIC_RELEASE);
	if (s->daemon)
		fd = MHD_quiesce_daemon(s->daemon);
	// Suspended connections must have been resumed before the daemon is stopped. Connections that are there may ask again
	// until then: they are told to come back.
	http_workers_stop(s->workers);
	if (s->daemon) {
		send_answers(s);
		MHD_stop_daemon(s->daemon);
	}
	http_workers_free(s->workers);
	http_peers_free(s->peers);
	// Not before: its thread looks at the socket, and the number could be another file's by then.
	if (fd >= 0)
		close(fd);
	buf_free(&s->cert);
	buf_free(&s->key);
	buf_free(&s->ca);
	free(s);
}
