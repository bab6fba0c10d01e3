import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeMap;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Computes the same again and again, with threads, garbage, exceptions and native code, and
 *  prints the results. */
public class Worker {
    static byte[] mix(int number) throws Exception {
        TreeMap<String, Integer> map = new TreeMap<>();
        for (int i = 0; i < 300; i++) {
            map.put("k" + (i * 7919 + number) % 1009, i);
            try {
                if (i % 50 == 0) throw new IllegalStateException("as it has to");
            } catch (IllegalStateException error) {
                map.merge("thrown", 1, Integer::sum);
            }
        }
        byte[] text = map.toString().getBytes("UTF-8");
        byte[] packed = new byte[text.length + 100], unpacked = new byte[text.length];
        Deflater deflater = new Deflater();
        deflater.setInput(text);
        deflater.finish();
        int length = deflater.deflate(packed);
        deflater.end();
        Inflater inflater = new Inflater();
        inflater.setInput(packed, 0, length);
        inflater.inflate(unpacked);
        inflater.end();
        return MessageDigest.getInstance("SHA-256").digest(unpacked);
    }

    public static void main(String[] arguments) throws Exception {
        while (true) {
            byte[][] parts = new byte[8][];
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < parts.length; number++) {
                int own = number;
                Thread thread = new Thread(() -> {
                    try {
                        MessageDigest all = MessageDigest.getInstance("SHA-256");
                        for (int i = 0; i < 20; i++) all.update(mix(own * 100 + i));
                        parts[own] = all.digest();
                    } catch (Exception error) {
                        parts[own] = error.toString().getBytes();
                    }
                });
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) thread.join();
            MessageDigest all = MessageDigest.getInstance("SHA-256");
            for (byte[] part : parts) all.update(part);
            System.out.println(HexFormat.of().formatHex(all.digest()));
        }
    }
}
