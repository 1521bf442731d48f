import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.apache.kerby.kerberos.kerb.server.KdcConfigKey;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;

/**
 * A Kerberos KDC on loopback: Apache Kerby's, which Hadoop's MiniKdc starts too. Its principals live in memory, their keys come from
 * passwords, so that keytabs stay good when it starts again.
 *
 * <p>Arguments: working folder, realm, TCP port, longest life of a ticket in seconds, file of principals. A line of that file is a
 * principal, its password and, where it gets one, its keytab, separated by tabs.
 */
public final class Kdc {
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    // Kerby leaves a krb5.conf with one realm in its working folder, where nobody is to find it.
    File own = Files.createDirectories(folder.resolve("own")).toFile();
    SimpleKdcServer kdc = new SimpleKdcServer();
    kdc.setWorkDir(own);
    kdc.setKdcHost("127.0.0.1");
    kdc.setKdcRealm(args[1]);
    kdc.setKdcTcpPort(Integer.parseInt(args[2]));
    kdc.setAllowUdp(false);
    kdc.getKdcConfig().setString(KdcConfigKey.ENCRYPTION_TYPES, "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96");
    kdc.getKdcConfig().setLong(KdcConfigKey.MAXIMUM_TICKET_LIFETIME, Long.parseLong(args[3]));
    kdc.getKdcConfig().setLong(KdcConfigKey.MINIMUM_TICKET_LIFETIME, 1L);
    kdc.init();
    for (String line : Files.readAllLines(Path.of(args[4]))) {
      String[] principal = line.split("\t");
      kdc.createPrincipal(principal[0], principal[1]);
      if (principal.length > 2) {
        Path made = folder.resolve("new.keytab");
        Files.deleteIfExists(made);
        kdc.exportPrincipal(principal[0], made.toFile());
        Files.move(made, Path.of(principal[2]), StandardCopyOption.REPLACE_EXISTING);
      }
    }
    kdc.start();
    Thread.currentThread().join();
  }
}
