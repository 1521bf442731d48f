import java.io.IOException;
import java.net.URI;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Copies the JDK's SASL mechanism GSSAPI from the Java that runs this to a folder, for another Java that lacks the module
 * jdk.security.jgss. The folder is then put behind that Java's own classes.
 */
public final class SaslClasses {
  private static final String FOLDER = "com/sun/security/sasl/gsskerb";

  public static void main(String[] args) throws IOException {
    Path module = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules/jdk.security.jgss", FOLDER);
    Path target = Files.createDirectories(Path.of(args[0], FOLDER));
    try (DirectoryStream<Path> classes = Files.newDirectoryStream(module)) {
      for (Path one : classes) {
        Files.copy(one, target.resolve(one.getFileName().toString()));
      }
    }
    Path services = Files.createDirectories(Path.of(args[0], "META-INF", "services"));
    Files.writeString(services.resolve("java.security.Provider"), "com.sun.security.sasl.gsskerb.JdkSASL\n");
  }
}
