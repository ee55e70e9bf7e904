// SPDX-License-Identifier: Apache-2.0
package blkprof;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Properties;
import javax.servlet.DispatcherType;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.apache.solr.core.CoreContainer;
import org.apache.solr.servlet.CoreContainerProvider;
import org.apache.solr.servlet.SolrDispatchFilter;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.rewrite.handler.RewriteHandler;
import org.eclipse.jetty.rewrite.handler.RewritePatternRule;
import org.eclipse.jetty.server.AsyncRequestLogWriter;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.CustomRequestLog;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.StatisticsHandler;
import org.eclipse.jetty.server.handler.gzip.GzipHandler;
import org.eclipse.jetty.servlet.FilterHolder;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.Source;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/**
 * A real Solr 9 HTTP server without the distribution: the same listener + filter as web.xml in a Jetty that is set up
 * like the distribution's jetty.xml/jetty-http.xml/gzip/graceful/requestlog modules.
 *
 * <p>java ... blkprof.SolrServer SOLR_HOME PORT
 */
public final class SolrServer {
  /** Anything the filter does not take (static admin UI in the distribution). */
  public static final class NotFound extends HttpServlet {
    @Override
    protected void service(HttpServletRequest req, HttpServletResponse rsp) throws java.io.IOException {
      rsp.sendError(404);
    }
  }

  public static void main(String[] args) throws Exception {
    if (args.length != 2) {
      System.err.println("usage: SolrServer SOLR_HOME PORT");
      System.exit(2);
    }
    Path home = Path.of(args[0]).toAbsolutePath().normalize();
    int port = Integer.parseInt(args[1]);
    String host = System.getProperty("solr.jetty.host", "127.0.0.1");

    QueuedThreadPool qtp =
        new QueuedThreadPool(
            Integer.getInteger("solr.jetty.threads.max", 10000), Integer.getInteger("solr.jetty.threads.min", 10), 120_000);
    Server server = new Server(qtp);
    server.manage(qtp);
    server.setStopAtShutdown(true);
    server.setStopTimeout(15_000);

    HttpConfiguration http = new HttpConfiguration();
    http.setOutputBufferSize(32768);
    http.setOutputAggregationSize(8192);
    http.setRequestHeaderSize(Integer.getInteger("solr.jetty.request.header.size", 8192));
    http.setResponseHeaderSize(8192);
    http.setSendServerVersion(false);
    http.setSendDateHeader(false);
    http.setHeaderCacheSize(512);
    http.setDelayDispatchUntilContent(false);
    ConnectionFactory h1 = new HttpConnectionFactory(http);
    ServerConnector connector =
        Boolean.getBoolean("server.onlyHttp1")
            ? new ServerConnector(server, -1, -1, h1)
            : new ServerConnector(server, -1, -1, h1, new HTTP2CServerConnectionFactory(http));
    connector.setHost(host);
    connector.setPort(port);
    connector.setIdleTimeout(120_000);
    server.addConnector(connector);

    ServletContextHandler root = new ServletContextHandler(server, "/solr", ServletContextHandler.NO_SESSIONS);
    root.setResourceBase(home.toString());
    Properties node = new Properties(); // node properties: seen by solr.xml ${...}
    node.setProperty("hostPort", Integer.toString(port));
    node.setProperty("hostContext", "/solr");
    root.setAttribute(SolrDispatchFilter.PROPERTIES_ATTRIBUTE, node);
    root.setAttribute(SolrDispatchFilter.SOLRHOME_ATTRIBUTE, home.toString());
    root.addEventListener(new CoreContainerProvider());
    FilterHolder filter = root.getServletHandler().newFilterHolder(Source.EMBEDDED);
    filter.setHeldClass(SolrDispatchFilter.class);
    filter.setName("SolrRequestFilter");
    root.addFilter(filter, "/*", EnumSet.of(DispatcherType.REQUEST));
    root.addServlet(NotFound.class, "/");

    RewriteHandler rewrite = new RewriteHandler(); // v2 API: /api/... -> /solr/____v2/...
    rewrite.setRewriteRequestURI(true);
    rewrite.setRewritePathInfo(false);
    rewrite.setOriginalPathAttribute("requestedPath");
    rewrite.addRule(new RewritePatternRule("/api/*", "/solr/____v2"));
    rewrite.setHandler(root);
    GzipHandler gzip = new GzipHandler();
    gzip.setMinGzipSize(2048);
    gzip.setIncludedMethods("GET", "POST");
    gzip.setHandler(rewrite);
    StatisticsHandler graceful = new StatisticsHandler();
    graceful.setGracefulShutdownWaitsForRequests(true);
    graceful.setHandler(gzip);
    server.setHandler(graceful);

    String requestLog = System.getProperty("server.requestlog"); // e.g. /x/logs/yyyy_mm_dd.request.log
    if (requestLog != null) {
      AsyncRequestLogWriter w = new AsyncRequestLogWriter(requestLog);
      w.setFilenameDateFormat("yyyy_MM_dd");
      w.setAppend(true);
      w.setTimeZone("UTC");
      // begin of the request (ms), client port, request line, status, body bytes out, bytes in, duration, client's trace id.
      // Jetty 10 takes %T from millisecond stamps; the line is written when the response is complete.
      server.setRequestLog(
          new CustomRequestLog(
              w,
              System.getProperty(
                  "server.requestlog.format",
                  "%{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'|UTC}t %{remote}p \"%r\" %s %O %I %{ms}T %{X-Trace-Id}i")));
    }

    long t0 = System.nanoTime();
    CoreContainer cc;
    try {
      server.start();
      cc = ((SolrDispatchFilter) filter.getFilter()).getCores(); // throws when Solr did not come up
    } catch (Throwable e) { // Jetty's threads would keep the JVM alive
      e.printStackTrace();
      System.exit(1);
      return;
    }
    cc.waitForLoadingCoresToFinish(60_000);
    long up = System.currentTimeMillis() - ManagementFactory.getRuntimeMXBean().getStartTime();
    System.out.printf(
        "READY pid=%d url=http://%s:%d/solr jvm_ms=%d server_ms=%d cores=%s errors=%s%n",
        ProcessHandle.current().pid(), host, connector.getLocalPort(), up, (System.nanoTime() - t0) / 1_000_000,
        cc.getAllCoreNames(), cc.getCoreInitFailures().keySet());
    System.out.flush();
    String ready = System.getProperty("server.readyfile");
    if (ready != null) {
      Files.writeString(Path.of(ready), ProcessHandle.current().pid() + " " + connector.getLocalPort() + "\n");
    }
    server.join();
  }
}
