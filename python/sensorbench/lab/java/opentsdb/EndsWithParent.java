import java.io.IOException;
import java.lang.reflect.Method;
import java.util.Arrays;

/** Calls the main method of a class in a process that ends with the one that started it, however that one ends: its standard input is closed then. */
public final class EndsWithParent {
    private EndsWithParent() {
    }

    /** Arguments: the name of the class, and the arguments of its main method. */
    public static void main(String[] arguments) throws Exception {
        Thread thread = new Thread(EndsWithParent::waitForEnd, "parent");
        thread.setDaemon(true);
        thread.start();
        Method main = Class.forName(arguments[0]).getMethod("main", String[].class);
        // Its class need not be public.
        main.setAccessible(true);
        main.invoke(null, (Object) Arrays.copyOfRange(arguments, 1, arguments.length));
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
                // Nothing is ever sent.
            }
        } catch (IOException gone) {
            // As when it is closed.
        }
        Runtime.getRuntime().halt(0);
    }
}
