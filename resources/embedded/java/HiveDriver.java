import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * Runs statements on a real Hive driver, 3.1.3 or 4.2.0: one statement a line on stdin, one answer a line on stdout.
 *
 * <p>Lines are made of Base64 texts separated by tabs: a statement; an answer is nanoseconds (plain), error ("" if none), rows.
 * All of Hive is reached by reflection, so that this file needs no jars to compile. The class path is the environment variable
 * HIVE_DRIVER_CP: Hive 3 casts its class loader to URLClassLoader, which Java no longer gives, so it is loaded inside one.
 *
 * <p>With the argument "worker" it also runs, as a HiveServer2 does, a worker that carries out what the metastore wants compacted.
 */
public class HiveDriver {
  private final Class<?> hiveConf;
  private final Class<?> sessionState;
  private final Object session;
  private final Object conf;

  private HiveDriver(ClassLoader loader) throws Exception {
    hiveConf = loader.loadClass("org.apache.hadoop.hive.conf.HiveConf");
    sessionState = loader.loadClass("org.apache.hadoop.hive.ql.session.SessionState");
    Object fresh = hiveConf.getConstructor(Class.class).newInstance(sessionState);
    Object unstarted = sessionState.getConstructor(hiveConf).newInstance(fresh);
    session = sessionState.getMethod("start", sessionState).invoke(null, unstarted);
    conf = sessionState.getMethod("getConf").invoke(session);
  }

  public static void main(String[] args) throws Exception {
    List<URL> urls = new ArrayList<>();
    for (String path : System.getenv("HIVE_DRIVER_CP").split(File.pathSeparator)) {
      if (!path.isEmpty()) urls.add(new File(path).toURI().toURL());
    }
    URLClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
    Thread.currentThread().setContextClassLoader(loader);
    PrintStream answers = System.out;
    System.setOut(System.err); // Hive prints there too
    HiveDriver driver = new HiveDriver(loader);
    if (List.of(args).contains("worker")) driver.startWorker(loader);
    answers.println("ready");
    BufferedReader statements = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = statements.readLine(); line != null; line = statements.readLine()) {
      String statement = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
      answers.println(driver.answer(statement, loader));
    }
    System.exit(0); // Hive leaves threads behind
  }

  private String answer(String statement, ClassLoader loader) {
    List<Object> rows = new ArrayList<>();
    long start = System.nanoTime();
    String error = "";
    try {
      error = statement.toLowerCase().startsWith("set ") ? set(statement.substring(4)) : run(statement, rows, loader);
    } catch (InvocationTargetException e) {
      error = said(e.getCause());
    } catch (Throwable e) {
      error = said(e);
    }
    StringBuilder line = new StringBuilder().append(System.nanoTime() - start).append('\t').append(encoded(error));
    for (Object row : rows) line.append('\t').append(encoded(String.valueOf(row)));
    return line.toString();
  }

  private void startWorker(ClassLoader loader) throws Exception {
    String compactor = "org.apache.hadoop.hive.ql.txn.compactor.";
    Class<?> thread = loader.loadClass(compactor + "CompactorThread");
    Object worker = loader.loadClass(compactor + "Worker").getConstructor().newInstance();
    Object own = hiveConf.getConstructor(hiveConf).newInstance(conf);
    Class<?> settings = loader.loadClass("org.apache.hadoop.conf.Configuration");
    thread.getMethod("initializeAndStartThread", thread, settings).invoke(null, worker, own);
  }

  private String set(String assignment) throws Exception {
    String[] parts = assignment.split("=", 2);
    if (parts.length < 2) return "no value: set " + assignment;
    hiveConf.getMethod("set", String.class, String.class).invoke(conf, parts[0].trim(), parts[1].trim());
    return "";
  }

  private String run(String statement, List<Object> rows, ClassLoader loader) throws Exception {
    Class<?> type = loader.loadClass("org.apache.hadoop.hive.ql.IDriver");
    Class<?> factory = loader.loadClass("org.apache.hadoop.hive.ql.DriverFactory");
    Object driver = factory.getMethod("newDriver", hiveConf).invoke(null, conf);
    try {
      type.getMethod("setMaxRows", int.class).invoke(driver, 1_000_000);
      Object response = type.getMethod("run", String.class).invoke(driver, statement); // Hive 4 throws, Hive 3 returns errors
      String error = failure(response);
      if (error.isEmpty()) fetch(type.getMethod("getResults", List.class), driver, rows);
      return error;
    } finally {
      type.getMethod("close").invoke(driver);
    }
  }

  private static String failure(Object response) throws Exception {
    for (Method method : response.getClass().getMethods()) {
      if (method.getName().equals("getResponseCode") && (int) method.invoke(response) != 0) {
        return String.valueOf(response.getClass().getMethod("getErrorMessage").invoke(response));
      }
    }
    return "";
  }

  private static void fetch(Method getResults, Object driver, List<Object> rows) throws Exception {
    boolean more = true;
    while (more) {
      List<Object> batch = new ArrayList<>();
      try {
        more = (boolean) getResults.invoke(driver, batch);
      } catch (InvocationTargetException e) {
        return; // the statement has no result set
      }
      rows.addAll(batch);
    }
  }

  private static String said(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable cause = error; cause != null && text.length() < 2000; cause = cause.getCause()) {
      text.append(text.length() == 0 ? "" : "; caused by ").append(cause);
    }
    return text.toString();
  }

  private static String encoded(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
