// A small web service of Java: collections, regular expressions, streams, hashes.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.Executors;
import java.util.regex.Pattern;
import java.util.stream.*;

public class App {
    record Item(int id, String name, double price) {}

    static final List<Item> ITEMS =
            IntStream.range(0, 3000).mapToObj(n -> new Item(n, "item " + n, n * 7 % 101)).collect(Collectors.toList());
    static final Pattern WORD = Pattern.compile("[a-z]+ (\\d+)");

    static String group(int n) {
        TreeMap<Integer, Double> sums = ITEMS.stream().filter(it -> it.price() > n % 50)
                .collect(Collectors.groupingBy(it -> it.id() % 37, TreeMap::new, Collectors.summingDouble(Item::price)));
        return sums.toString();
    }

    static String match(int n) {
        StringBuilder text = new StringBuilder();
        for (Item item : ITEMS.subList(n % 1000, n % 1000 + 800)) text.append(item.name()).append(", ");
        return WORD.matcher(text).results().map(it -> it.group(1)).sorted().collect(Collectors.joining(" "));
    }

    static String sign(int n) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (Item item : ITEMS) digest.update(String.format("%d %s %.2f", item.id() + n, item.name(), item.price()).getBytes());
        return HexFormat.of().formatHex(digest.digest());
    }

    static void answer(HttpExchange exchange) {
        try (exchange) {
            String query = exchange.getRequestURI().getQuery();
            int n = query == null ? 0 : Integer.parseInt(query.substring(2));
            String body = switch (exchange.getRequestURI().getPath()) {
                case "/group" -> group(n);
                case "/match" -> match(n);
                default -> sign(n);
            };
            exchange.sendResponseHeaders(200, body.length());
            exchange.getResponseBody().write(body.getBytes());
        } catch (Exception error) {
            System.err.println(error);
        }
    }

    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 0);
        server.createContext("/", App::answer);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
