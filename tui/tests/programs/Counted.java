import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.Scanner;

/** Collects garbage and starts threads as often as each input line says, and prints how often. */
public class Counted {
    static long collections(String name) {
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans())
            if (bean.getName().equals(name)) return bean.getCollectionCount();
        return -1;
    }

    public static void main(String[] words) throws Exception {
        Scanner lines = new Scanner(System.in);
        System.out.println("ready");
        while (lines.hasNextInt()) {
            int times = lines.nextInt();
            long before = collections("MarkSweepCompact");
            long started = ManagementFactory.getThreadMXBean().getTotalStartedThreadCount();
            for (int i = 0; i < times; i++) {
                System.gc();
                Thread thread = new Thread(() -> { });
                thread.start();
                thread.join();
            }
            System.out.println((collections("MarkSweepCompact") - before) + " "
                + (ManagementFactory.getThreadMXBean().getTotalStartedThreadCount() - started));
        }
    }
}
