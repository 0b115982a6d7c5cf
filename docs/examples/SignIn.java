import java.io.IOException;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Signs somebody in with Apple by way of siwa-accounts, with nothing but Java's own library (17 or later).
 *
 * `begin` belongs where your pages link to "Sign in with Apple", `finish` where Apple's page posts its form to. Java has no
 * JSON of its own: here a pattern finds what is wanted, in an application its JSON library does.
 */
public class SignIn {
  /** What to keep of a browser: in a cookie SameSite=None; Secure. */
  record Session(String state, String nonce, String key) {}

  static final Map<String, String> env = System.getenv();
  static final HttpClient http = HttpClient.newHttpClient();

  static String secret() {
    byte[] random = new byte[32];
    new SecureRandom().nextBytes(random);
    return Base64.getUrlEncoder().withoutPadding().encodeToString(random);
  }

  /** Where to send the browser. */
  static String begin(Session session) {
    var query = new LinkedHashMap<String, String>();
    query.put("client_id", env.get("CLIENT_ID"));
    query.put("redirect_uri", env.get("REDIRECT_URI"));
    query.put("response_type", "code id_token");
    query.put("response_mode", "form_post");
    query.put("scope", "name email");
    query.put("state", session.state());
    query.put("nonce", session.nonce());
    return env.getOrDefault("APPLE_AUTHORIZE", "https://appleid.apple.com/auth/authorize") + "?"
        + query.entrySet().stream()
            .map(entry -> entry.getKey() + "=" + URLEncoder.encode(entry.getValue(), StandardCharsets.UTF_8).replace("+", "%20"))
            .collect(Collectors.joining("&"));
  }

  /** The id of who has signed in, by the form that Apple's page has posted; null where they have to begin again. */
  static String finish(Session session, String body) throws Exception {
    var form = new HashMap<String, String>();
    for (String pair : body.split("&")) {
      String[] parts = pair.split("=", 2);
      form.put(parts[0], URLDecoder.decode(parts.length == 2 ? parts[1] : "", StandardCharsets.UTF_8));
    }
    if (!MessageDigest.isEqual(form.getOrDefault("state", "").getBytes(), session.state().getBytes())) {
      throw new SecurityException("not a sign-in that this browser has begun");
    }
    if (form.containsKey("error")) return null; // the person has cancelled
    // form.get("user") has the name, once and never again: store it now, under the session's key.
    return signIn(session.key(), String.format(
        // None of these has a character that JSON would want escaped.
        "{\"identityToken\":\"%s\",\"authorizationCode\":\"%s\",\"nonce\":\"%s\",\"clientId\":\"%s\",\"redirectUri\":\"%s\"}",
        word(form.get("id_token")), word(form.get("code")), session.nonce(), env.get("CLIENT_ID"), env.get("REDIRECT_URI")));
  }

  static String word(String text) {
    if (text == null || !text.matches("[A-Za-z0-9._-]+")) throw new SecurityException("not what Apple sends");
    return text;
  }

  /** The key is the sign-in's own, and the same whenever this one is repeated. */
  static String signIn(String key, String body) throws Exception {
    long seconds = 0, begin = System.nanoTime();
    for (int attempt = 0; attempt < 5; attempt++) {
      // A code is good for five minutes.
      if (Duration.ofNanos(System.nanoTime() - begin).plusSeconds(seconds).toMinutes() >= 5) {
        return null; // the code would be too old
      }
      Thread.sleep(1000 * seconds);
      var request = HttpRequest.newBuilder(URI.create(env.get("ACCOUNTS_URL") + "/v1/sign-ins"))
          .timeout(Duration.ofSeconds(70)).header("Authorization", "Bearer " + env.get("ACCOUNTS_TOKEN"))
          .header("Content-Type", "application/json").header("Idempotency-Key", key)
          .POST(HttpRequest.BodyPublishers.ofString(body)).build();
      HttpResponse<String> answer;
      try {
        answer = http.send(request, HttpResponse.BodyHandlers.ofString());
      } catch (IOException lost) {
        seconds = 1; // the connection was lost, and the answer with it: the same request gets the same one
        continue;
      }
      if (answer.statusCode() == 200) return member("id", answer.body());
      if (answer.statusCode() == 429 || answer.statusCode() == 503) {
        seconds = answer.headers().firstValueAsLong("Retry-After").orElse(5);
        continue;
      }
      if ("urn:siwa:problem:begin-again".equals(member("type", answer.body()))) { // RFC 9457
        return null; // send the person to Apple once more
      }
      throw new SecurityException(member("detail", answer.body()));
    }
    throw new IOException("siwa-accounts does not answer");
  }

  static String member(String name, String json) {
    var found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
    return found.find() ? found.group(1) : null;
  }

  public static void main(String[] arguments) throws Exception {
    var session = new Session(secret(), secret(), secret());
    System.out.println(begin(session));
    String id = finish(session, new Scanner(System.in).nextLine());
    System.out.println(id == null ? "begin again" : id);
  }
}
