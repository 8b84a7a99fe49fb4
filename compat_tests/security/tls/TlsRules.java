import java.io.FileInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.apache.kafka.security.PasswordEncoder;

/** What Java and Kafka make of names, rules and encoded passwords; one line of output for each question. */
public class TlsRules {
    public static void main(String[] arguments) throws Exception {
        var out = new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line : Files.readAllLines(Paths.get(arguments[0]))) {
            String[] parts = line.split("\t", -1);
            out.println(respond(parts));
        }
    }

    private static String respond(String[] parts) throws Exception {
        switch (parts[0]) {
            case "subject":
                var factory = CertificateFactory.getInstance("X.509");
                var certificate = (X509Certificate) factory.generateCertificate(new FileInputStream(parts[1]));
                return certificate.getSubjectX500Principal().getName();
            case "decode":
                var encoder = PasswordEncoder.encrypting(new Password(parts[1]), null, parts[2], 128, 4096);
                return encoder.decode(parts[3]).value();
            default:
                try {
                    return SslPrincipalMapper.fromRules(parts[1]).getName(parts[2]);
                } catch (SslPrincipalMapper.NoMatchingRule error) {
                    return "no rule";
                } catch (IllegalArgumentException error) {
                    return "invalid";
                }
        }
    }
}
